#include "app/jobs/job_counters.h"

#include <algorithm>

#include "app/jobs/live_job.h"

namespace culprit::app {

std::string_view to_string(FigureState state) {
  constexpr std::string_view kWords[] = {"running", "hangs", "ended", "failed", "no_engine"};
  return kWords[static_cast<size_t>(state)];
}

namespace {

JobCounters::Verdict counters_of(const Diagnosis& d) {
  const auto named = [](const Suspect& s) { return s.host.has_value(); };
  return {d.category,    d.component,  d.symptom,
          d.action.kind, d.confidence, static_cast<uint64_t>(std::ranges::count_if(d.hosts, named))};
}

FigureState state_of(const LiveJobSummary& job) {
  if (job.state == JobState::kRunning) return job.hangs ? FigureState::kHangs : FigureState::kRunning;
  return job.state == JobState::kFailed ? FigureState::kFailed : FigureState::kEnded;
}

}  // namespace

void LiveJob::note_step(TimeNs at) {
  if (!engine_) return;
  if (const auto step = engine_->read().iteration()) steps_.add(at, *step);
  progressed_ns_ = engine_->read().progressed_ns();
}

// Uses the lines' times where available; they are more exact than arrival times.
std::optional<double> LiveJob::effective_time(TimeNs now) const {
  const RunTimes times{summary_.first_ns, progressed_ns_,
                       running() ? agents_.known_until(now) : summary_.last_ns};
  if (const auto of_lines = effective_time_ratio(report_.activity.progress, times)) return of_lines;
  return effective_time_ratio(steps_.points(), times);
}

JobCounters LiveJob::counters(TimeNs now) const {
  const LiveJobSummary job = summary();
  JobCounters out;
  out.id = job.id;
  out.run = job.run;
  out.state = state_of(job);
  out.first_ns = job.first_ns;
  out.last_ns = job.last_ns;
  out.progressed_ns = progressed_ns_;
  out.step = job.iteration;
  out.hosts = job.hosts;
  out.ranks = job.ranks;
  out.effective_time = effective_time(now);
  if (report_.verdict && job.verdict) out.verdict = counters_of(report_.diagnoses[*report_.verdict]);
  return out;
}

}  // namespace culprit::app
