#include "app/jobs/judgement.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace culprit::app {
namespace {

constexpr double kConclusive = 0.5;  // same value as in the correlator

// 0 confirmed, 1 not judged, 2 refuted.
int standing(const Judgements& judgements, const std::string& id) {
  const auto said = judgements.find(id);
  if (said == judgements.end()) return 1;
  return said->second ? 0 : 2;
}

}  // namespace

JudgedOrder order_of(const std::vector<RankedDiagnosis>& diagnoses, std::optional<size_t> verdict,
                     const Judgements& judgements) {
  JudgedOrder out;
  out.order.resize(diagnoses.size());
  std::iota(out.order.begin(), out.order.end(), size_t{0});
  const auto standing_of = [&](size_t i) { return standing(judgements, diagnoses[i].id); };
  std::stable_sort(out.order.begin(), out.order.end(),
                   [&](size_t a, size_t b) { return standing_of(a) < standing_of(b); });
  if (out.order.empty()) return out;
  const size_t first = out.order[0];
  if (standing_of(first) == 0)
    out.verdict = first;
  else if (verdict && standing_of(*verdict) != 2)
    out.verdict = verdict;
  else if (verdict && standing_of(first) == 1 && diagnoses[first].confidence >= kConclusive)
    out.verdict = first;
  return out;
}

void apply_judgements(const Judgements& judgements, Report& report) {
  if (judgements.empty()) return;
  std::vector<RankedDiagnosis> ranked;
  for (const Diagnosis& d : report.diagnoses) ranked.push_back({d.id, d.confidence});
  const JudgedOrder judged = order_of(ranked, report.verdict, judgements);
  std::vector<Diagnosis> diagnoses;
  report.verdict.reset();
  for (size_t i = 0; i < judged.order.size(); ++i) {
    if (judged.verdict == judged.order[i]) report.verdict = i;
    diagnoses.push_back(std::move(report.diagnoses[judged.order[i]]));
    diagnoses.back().refuted = standing(judgements, diagnoses.back().id) == 2;
  }
  report.diagnoses = std::move(diagnoses);
}

}  // namespace culprit::app
