#include "app/daemon/judged_titles.h"

#include "app/daemon/alert_faults.h"

namespace culprit::app {

std::optional<std::string> judged_title(const std::vector<store::DiagnosisRow>& rows) {
  const RunVerdict verdict = verdict_of(rows);
  return verdict.fault ? std::optional(verdict.fault->title) : std::nullopt;
}

JudgedTitles::Answer JudgedTitles::of(store::Index& index, const std::set<Run>& listed) {
  const store::Index::Changed changed = index.drain_changed();
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
    } else if (const auto rows = index.diagnoses({.job = run.first, .run = run.second})) {
      known.emplace(run, judged_title(*rows));
    }
  }
  known_ = std::move(known);
  return {complete ? known_ : Titles(), complete};
}

}  // namespace culprit::app
