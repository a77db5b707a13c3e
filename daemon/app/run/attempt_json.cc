#include "app/run/attempt_json.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/restart.h"

namespace culprit::app {
namespace {

constexpr size_t kAttemptLines = 10'000;
constexpr uint32_t kAttemptNumberMost = 1'000'000;

const char* word_of(recover::Progress progress) {
  switch (progress) {
    case recover::Progress::kMade:
      return "made";
    case recover::Progress::kNone:
      return "none";
    case recover::Progress::kUnknown:
      break;
  }
  return "unknown";
}

recover::Progress progress_of(std::string_view word) {
  if (word == "made") return recover::Progress::kMade;
  return word == "none" ? recover::Progress::kNone : recover::Progress::kUnknown;
}

}  // namespace

std::string ledger_line(const Attempt& a) {
  nlohmann::ordered_json out;
  const auto number = [](std::optional<int64_t> n) {
    return n ? nlohmann::ordered_json(*n) : nlohmann::ordered_json(nullptr);
  };
  out["attempt"] = a.number;
  out["begin_ns"] = a.begin_ns;
  out["end_ns"] = a.end_ns;
  out["status"] = a.status;
  out["headline"] = a.headline;
  out["confidence"] = a.confidence ? nlohmann::ordered_json(*a.confidence) : nlohmann::ordered_json(nullptr);
  out["root"] = a.failure.root;
  out["restart"] = to_string(a.failure.advice.kind);
  out["hang"] = a.failure.hang;
  out["hosts"] = a.failure.advice.hosts;
  out["devices"] = a.failure.advice.devices;
  out["ran_on"] = a.failure.ran_on;
  out["resume"] = a.resume;
  out["without"] = a.without;
  out["from"] = number(a.from);
  out["to"] = number(a.to);
  out["progress"] = word_of(a.failure.progress);
  out["again"] = a.decision.again;
  out["why"] = a.decision.why;
  out["lost_ns"] = a.lost_ns;
  if (a.failure.preempted) out["preempted"] = true;
  if (!a.revision.empty()) out["revision"] = a.revision;
  if (!a.decision.revision.empty()) out["next_revision"] = a.decision.revision;
  if (!a.leaves_out.empty()) out["leaves_out"] = a.leaves_out;
  if (!a.job.empty()) out["job"] = a.job;
  if (!a.successor.empty()) out["successor"] = a.successor;
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void read_attempt(Fields& f, Attempt& out) {
  recover::Failure& failure = out.failure;
  std::string restart, progress;
  f.number("attempt", out.number, 0, kAttemptNumberMost);
  f.time("begin_ns", out.begin_ns);
  f.time("end_ns", out.end_ns);
  f.number("status", out.status, 0, 255);
  f.text("headline", out.headline);
  f.share("confidence", out.confidence);
  f.text("root", failure.root);
  f.text("restart", restart);
  f.boolean("hang", failure.hang);
  f.texts("hosts", failure.advice.hosts);
  f.texts("devices", failure.advice.devices);
  f.texts("ran_on", failure.ran_on);
  f.text("resume", out.resume);
  f.texts("without", out.without);
  f.optional("from", out.from);
  f.optional("to", out.to);
  f.text("progress", progress);
  f.boolean("again", out.decision.again);
  f.text("why", out.decision.why);
  f.time("lost_ns", out.lost_ns);
  f.boolean("preempted", failure.preempted);
  f.text("revision", out.revision);
  f.text("next_revision", out.decision.revision);
  f.texts("leaves_out", out.leaves_out);
  f.text("job", out.job);
  f.text("successor", out.successor);
  failure.advice.kind = from_word<Restart>(restart).value_or(Restart::kUnknown);
  failure.progress = progress_of(progress);
  failure.iteration = out.to;
  failure.begin_ns = out.begin_ns, failure.end_ns = out.end_ns;
  if (out.decision.again) out.decision.hosts = out.leaves_out;
}

std::vector<Attempt> attempts_of(std::string_view lines) {
  std::vector<Attempt> out;
  for (const std::string_view line : split(lines, '\n')) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object() || !object.contains("attempt") || out.size() == kAttemptLines) continue;
    Fields fields(object);
    Attempt attempt;
    read_attempt(fields, attempt);
    if (fields.result() && attempt.number > 0) out.push_back(std::move(attempt));
  }
  return out;
}

}  // namespace culprit::app
