#include "app/daemon/recover/job_reports.h"

#include <algorithm>

namespace culprit::app {
namespace {

// Ranks that never report an end are not waited for longer.
constexpr TimeNs kAchievedWithin = 30 * kNsPerSecond;

struct Outcomes {
  AdviceOutcome outcome;
  uint64_t now, before;
};

}  // namespace

std::vector<recover::Input> JobReports::read(const ScheduledJob& job, const LiveJobSummary& summary,
                                             TimeNs now) {
  Given& given = given_[summary.id];
  if (given.run != summary.run) given = {summary.run, kNoTime, {}, true};
  given.read = true;
  std::vector<recover::Input> out;
  bool saved = false;
  if (summary.saved && summary.saved->at_ns != given.saved_ns) {
    const TimeNs age = now - summary.saved->at_ns;
    saved = age >= kSettled && age <= kFresh;
    if (age >= kSettled) given.saved_ns = summary.saved->at_ns;
  }
  for (const AdviceSummary& one : summary.advice) {
    AdviceSummary& before = given.advice[one.id];
    const auto kind = advice_kind(one.kind);
    const TimeNs age = now - one.at_ns;
    if (before == one || !kind || age < kSettled) continue;
    const bool partly = one.achieved > before.achieved && one.achieved < one.taken && age < kAchievedWithin;
    if (partly) continue;
    const Outcomes all[] = {{AdviceOutcome::kTaken, one.taken, before.taken},
                            {AdviceOutcome::kRefused, one.refused, before.refused},
                            {AdviceOutcome::kNotApplied, one.not_applied, before.not_applied},
                            {AdviceOutcome::kAchieved, one.achieved, before.achieved}};
    for (const auto& [outcome, count, known] : all) {
      if (count <= known || age > kFresh) continue;
      const bool taken = outcome == AdviceOutcome::kTaken || outcome == AdviceOutcome::kAchieved;
      out.push_back(recover::AdviceSeen{job, one.id, *kind, outcome,
                                        static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX)),
                                        taken ? one.last_step : -1, taken ? std::string() : one.why});
    }
    before = one;
  }
  std::erase_if(given.advice, [&](const auto& known) {
    return std::ranges::find(summary.advice, known.first, &AdviceSummary::id) == summary.advice.end();
  });
  if (summary.iteration) out.insert(out.begin(), recover::ProgressSeen{job, *summary.iteration, saved});
  return out;
}

void JobReports::forget_others() {
  std::erase_if(given_, [](const auto& one) { return !one.second.read; });
  for (auto& [id, one] : given_) one.read = false;
}

}  // namespace culprit::app
