#include "app/run/chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/text.h"
#include "model/report.h"

namespace culprit::app {
namespace {

using nlohmann::json;

constexpr size_t kAttemptsMost = 10'000, kNamesMost = 10'000, kPathBytes = 4096;
constexpr uint32_t kNumberMost = 1'000'000;

std::string digest(const std::vector<std::string>& command) {
  return hex64(hash64(fmt::format("{}", fmt::join(command, "\n"))));
}

std::string text(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

bool flag(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

std::optional<int64_t> number(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number_integer() ? std::optional(at->get<int64_t>()) : std::nullopt;
}

std::vector<std::string> names(const json& object, const char* name) {
  std::vector<std::string> out;
  const auto at = object.find(name);
  if (at == object.end() || !at->is_array()) return out;
  for (const json& one : *at)
    if (one.is_string() && out.size() < kNamesMost) out.push_back(one.get<std::string>());
  return out;
}

recover::Progress progress_of(std::string_view word) {
  if (word == "made") return recover::Progress::kMade;
  return word == "none" ? recover::Progress::kNone : recover::Progress::kUnknown;
}

std::optional<Attempt> attempt_of(const json& line) {
  const auto n = number(line, "attempt");
  if (!n || *n < 1 || *n > kNumberMost) return std::nullopt;
  Attempt out;
  out.number = static_cast<uint32_t>(*n);
  out.begin_ns = number(line, "begin_ns").value_or(kNoTime);
  out.end_ns = number(line, "end_ns").value_or(kNoTime);
  out.status = static_cast<int>(number(line, "status").value_or(0) & 0xff);
  out.headline = text(line, "headline");
  if (const auto at = line.find("confidence"); at != line.end() && at->is_number())
    out.confidence = at->get<double>();
  out.without = names(line, "without");
  out.lost_ns = number(line, "lost_ns").value_or(0);
  out.resume = text(line, "resume");
  out.from = number(line, "from");
  out.to = number(line, "to");
  recover::Failure& failure = out.failure;
  failure.root = text(line, "root");
  failure.advice.kind = from_word<Restart>(text(line, "restart")).value_or(Restart::kUnknown);
  failure.advice.hosts = names(line, "hosts");
  failure.advice.devices = names(line, "devices");
  failure.hang = flag(line, "hang");
  failure.preempted = flag(line, "preempted");
  failure.ran_on = names(line, "ran_on");
  failure.progress = progress_of(text(line, "progress"));
  failure.iteration = out.to;
  failure.begin_ns = out.begin_ns, failure.end_ns = out.end_ns;
  out.decision.again = flag(line, "again");
  out.decision.why = text(line, "why");
  out.leaves_out = names(line, "leaves_out");
  if (out.decision.again) out.decision.hosts = out.leaves_out;
  out.job = text(line, "job");
  out.successor = text(line, "successor");
  return out;
}

}  // namespace

std::vector<std::string> handover_variables(const Handover& handover,
                                            const std::vector<std::string>& command) {
  return {fmt::format("{}={}:{}", kSuccessorVariable, handover.run, digest(command)),
          fmt::format("{}={}", kAttemptVariable, handover.number),
          fmt::format("{}={}", kResumeVariable, handover.resume)};
}

std::optional<Handover> handover_of(const std::vector<std::string>& command, const Lookup& variable) {
  const std::string value = variable(kSuccessorVariable).value_or("");
  const size_t colon = value.rfind(':');
  if (colon == value.npos || value.substr(colon + 1) != digest(command)) return std::nullopt;
  Handover out;
  out.run = value.substr(0, colon);
  if (!check_run_name(out.run).empty()) return std::nullopt;
  const std::string count = variable(kAttemptVariable).value_or("");
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), out.number);
  if (error != std::errc() || end != count.data() + count.size() || out.number > kNumberMost)
    return std::nullopt;
  out.resume = variable(kResumeVariable).value_or("");
  if (out.resume.size() > kPathBytes) out.resume.clear();
  return out;
}

std::vector<Attempt> attempts_of(std::string_view lines) {
  std::vector<Attempt> out;
  for (const std::string_view line : split(lines, '\n')) {
    const json read = json::parse(line, nullptr, false);
    if (!read.is_object() || out.size() == kAttemptsMost) continue;
    if (auto attempt = attempt_of(read)) out.push_back(std::move(*attempt));
  }
  return out;
}

bool goes_on(const std::vector<Attempt>& attempts, std::string_view id) {
  if (attempts.empty() || id.empty()) return false;
  const Attempt& last = attempts.back();
  return last.status != 0 && (last.successor == id || (last.successor.empty() && last.job == id));
}

std::vector<std::string> excluded_by(const std::vector<Attempt>& attempts) {
  std::vector<std::string> out;
  for (const Attempt& attempt : attempts)
    for (const std::string& node : attempt.leaves_out)
      if (std::ranges::find(out, node) == out.end()) out.push_back(node);
  return out;
}

}  // namespace culprit::app
