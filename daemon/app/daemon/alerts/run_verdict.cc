#include "app/daemon/alerts/run_verdict.h"

#include <algorithm>
#include <functional>

#include "app/jobs/judgement.h"

namespace culprit::app {

RunVerdict run_verdict(const std::vector<Verdict>& of_run) {
  RunVerdict out;
  out.known = !of_run.empty();
  std::vector<const Verdict*> candidates;
  Judgements judgements;
  for (const Verdict& v : of_run) {
    if (v.state == VerdictState::kRefuted) out.refuted.insert(v.id());
    if (v.state == VerdictState::kWithdrawn || v.diagnosis.title.empty()) continue;
    if (!v.judged_by.empty()) judgements[v.id()] = v.state == VerdictState::kConfirmed;
    candidates.push_back(&v);
  }
  // On a tie, the newest comes first; a report lists the most probable first.
  std::ranges::stable_sort(candidates, std::ranges::greater(),
                           [](const Verdict* v) { return v->diagnosis.confidence; });
  std::vector<RankedDiagnosis> ranked;
  std::optional<size_t> verdict;
  for (const Verdict* v : candidates) {
    if (v->leads) {
      if (!verdict) verdict = ranked.size();
      out.settled = out.settled && (v->settled || out.refuted.contains(v->id()));
    }
    ranked.push_back({v->id(), v->diagnosis.confidence});
  }
  const JudgedOrder judged = order_of(ranked, verdict, judgements);
  if (judged.verdict) out.verdict = *candidates[*judged.verdict];
  return out;
}

RunVerdict unread_verdict(const std::string& job, uint32_t run) {
  RunVerdict out;
  out.job = job;
  out.run = run;
  out.known = out.settled = false;
  return out;
}

RunVerdict run_verdict(records::Records& records, const std::string& job, uint32_t run) {
  const auto of_run = records.verdicts({.job = job, .run = run});
  if (!of_run) return unread_verdict(job, run);
  RunVerdict out = run_verdict(*of_run);
  out.job = job;
  out.run = run;
  return out;
}

}  // namespace culprit::app
