#include "app/daemon/api/judged_titles.h"

#include "app/daemon/alerts/run_verdict.h"

namespace culprit::app {

std::optional<std::string> judged_title(const std::vector<Verdict>& of_run) {
  const RunVerdict run = run_verdict(of_run);
  return run.verdict ? std::optional(run.verdict->diagnosis.title) : std::nullopt;
}

JudgedTitles::Answer JudgedTitles::of(records::Records& index, const std::set<Run>& listed) {
  const records::Changed changed = index.drain_changed();
  if (changed.all) known_.clear();
  for (const Run& run : changed.runs) known_.erase(run);
  const auto judged = index.judged_runs();
  if (!judged) return {};
  Titles known;
  size_t computed = 0;
  bool complete = true;
  for (const Run& run : *judged) {
    if (!listed.contains(run)) continue;
    const auto at = known_.find(run);
    if (at != known_.end()) {
      known.insert(*at);
    } else if (computed++ >= kRunsAtOnce) {
      complete = false;
    } else if (const auto rows = index.verdicts({.job = run.first, .run = run.second})) {
      known.emplace(run, judged_title(*rows));
    }
  }
  known_ = std::move(known);
  return {complete ? known_ : Titles(), complete};
}

}  // namespace culprit::app
