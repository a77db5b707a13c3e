#include "app/jobs/live_event.h"

#include <fmt/format.h>

#include "model/json_writer.h"
#include "model/verdict.h"

namespace culprit::app {
namespace {

constexpr std::string_view kEventWords[] = {"job_started", "finding",      "diagnosis",    "diagnosis_gone",
                                            "job_ended",   "pool_changed", "steps_wanted", "stacks_wanted"};
constexpr std::string_view kStateWords[] = {"running", "ended", "failed"};

std::string to_json(const LiveEvent& event, const FindingChange& change) {
  const Finding& f = change.finding;
  const Evidence none;
  const Evidence& e = f.evidence.empty() ? none : f.evidence.front();
  JsonWriter w;
  w.object([&] {
    w.field("job", event.job);
    w.field("run", event.run);
    w.time("time_ns", f.first_ns == kNoTime ? event.time_ns : f.first_ns);
    w.field("rule", f.rule);
    w.field("title", f.title);
    w.field("category", to_string(f.category));
    w.field("component", to_string(f.component));
    w.field("symptom", to_string(f.symptom));
    w.field("fatal", f.fatal);
    w.field("host", e.host);
    w.field("rank", e.rank);
    w.field("file", e.file);
    w.field("line", e.line);
    w.field("text", e.text);
    w.field("repeated", change.repeated);
  });
  return w.finish();
}

std::string to_json(const LiveEvent& event, const DiagnosisChange& change) {
  return culprit::to_json(verdict_of(event, change));
}

std::string to_json(const LiveEvent&, const JobChange& change) { return to_json(change.summary); }

std::string to_json(const LiveEvent&, const std::monostate&) { return {}; }
std::string to_json(const LiveEvent&, const std::shared_ptr<const PoolChange>&) { return {}; }

}  // namespace

std::string_view to_string(LiveEventKind kind) { return kEventWords[static_cast<size_t>(kind)]; }
std::string_view to_string(JobState state) { return kStateWords[static_cast<size_t>(state)]; }

std::string to_json(const LiveJobSummary& job) {
  JsonWriter w;
  w.object([&] {
    w.field("id", job.id);
    w.field("run", job.run);
    w.field("state", to_string(job.state));
    w.field("well", job.well);
    w.field("hangs", job.hangs);
    w.field("hosts", job.hosts);
    w.field("ranks", job.ranks);
    w.field("sources", job.sources);
    w.field("lines", job.lines);
    w.field("bytes", job.bytes);
    w.time("first_ns", job.first_ns);
    w.time("last_ns", job.last_ns);
    w.field("iteration", job.iteration);
    w.field("verdict", job.verdict);
    w.text_or_null("headline", job.headline);
    w.field("note", job.note);
    if (!job.attempts) return;
    w.field("attempt", job.attempts->attempt);
    w.field("attempts", job.attempts->of);
    w.values("excluded", job.attempts->excluded);
  });
  return w.finish();
}

Verdict verdict_of(const LiveEvent& event, const DiagnosisChange& change) {
  const Announcement& a = change.announcement;
  Verdict out;
  out.job = event.job;
  out.run = event.run;
  out.kind = change.diagnosis ? kind_of(*change.diagnosis) : "";
  if (event.kind == LiveEventKind::kDiagnosisWithdrawn) out.state = VerdictState::kWithdrawn;
  out.leads = a.index && a.verdict;
  out.settled = a.settled;
  out.since_ns = out.last_ns = event.time_ns;
  out.change = a.change;
  out.replaces_id = a.replaced_verdict_id;
  out.replaces_title = a.replaced_title;
  out.accused_ns = change.accused_ns;
  if (change.diagnosis) out.diagnosis = *change.diagnosis;
  out.diagnosis.id = event.id;
  out.diagnosis.state.reset();  // `state` of the verdict contains it
  return out;
}

std::string to_json(const LiveEvent& event) {
  return std::visit([&](const auto& content) { return to_json(event, content); }, event.content);
}

}  // namespace culprit::app
