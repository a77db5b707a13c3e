#include "app/jobs/judgement.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "model/headline.h"

namespace culprit::app {
namespace {

constexpr double kConclusive = 0.5;  // same value as in the correlator

// 0 confirmed, 1 not judged, 2 refuted.
int conclusion(const Judgements& judgements, const std::string& id) {
  const auto judged = judgements.find(id);
  if (judged == judgements.end()) return 1;
  return judged->second ? 0 : 2;
}

}  // namespace

JudgedOrder order_of(const std::vector<RankedDiagnosis>& diagnoses, std::optional<size_t> verdict,
                     const Judgements& judgements) {
  JudgedOrder out;
  out.order.resize(diagnoses.size());
  std::iota(out.order.begin(), out.order.end(), size_t{0});
  const auto conclusion_of = [&](size_t i) { return conclusion(judgements, diagnoses[i].id); };
  std::stable_sort(out.order.begin(), out.order.end(),
                   [&](size_t a, size_t b) { return conclusion_of(a) < conclusion_of(b); });
  if (out.order.empty()) return out;
  const size_t first = out.order[0];
  if (conclusion_of(first) == 0)
    out.verdict = first;
  else if (verdict && conclusion_of(*verdict) != 2)
    out.verdict = verdict;
  else if (verdict && conclusion_of(first) == 1 && diagnoses[first].confidence >= kConclusive)
    out.verdict = first;
  return out;
}

void conclude_again(Report& report) {
  std::vector<std::string> headlines;
  for (const Diagnosis& d : report.diagnoses) headlines.push_back(d.headline);
  conclude(report);
  for (size_t i = 0; i < headlines.size(); ++i) report.diagnoses[i].headline = std::move(headlines[i]);
  const Diagnosis* best = report.verdict ? leading(report) : nullptr;
  if (best && !best->headline.empty()) report.headline = best->headline;
}

void judge_report(const Judgements& judgements, Report& report) {
  if (judgements.empty()) return;
  const auto id_of_verdict = [&] {
    return report.verdict ? std::optional(report.diagnoses[*report.verdict].id) : std::nullopt;
  };
  const auto before = id_of_verdict();
  apply_judgements(judgements, report);
  const auto after = id_of_verdict();
  std::set<std::string> refuted, named;
  for (const Diagnosis& d : report.diagnoses)
    for (const Suspect& place : d.hosts)
      if (place.host) (d.is_refuted() ? refuted : named).insert(*place.host);
  std::erase_if(report.suspects, [&](const Suspect& place) {
    return place.host && refuted.contains(*place.host) && !named.contains(*place.host);
  });
  if (before && !after)
    report.missing.emplace_back("another explanation: the diagnosis that led was refuted");
  if (before != after) conclude_again(report);
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
    if (const auto judgement = judgements.find(diagnoses.back().id); judgement != judgements.end())
      diagnoses.back().state = judgement->second ? VerdictState::kConfirmed : VerdictState::kRefuted;
  }
  report.diagnoses = std::move(diagnoses);
}

}  // namespace culprit::app
