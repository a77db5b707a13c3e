#include "app/daemon/judged_titles.h"

#include "app/daemon/api_json.h"
#include "app/jobs/judgement.h"

namespace culprit::app {

std::optional<std::string> judged_title(const std::vector<store::DiagnosisRow>& rows) {
  std::vector<RankedDiagnosis> ranked;
  std::vector<std::string> titles;
  std::optional<size_t> verdict;
  Judgements judgements;
  for (const store::DiagnosisRow& row : rows) {
    const json d = json::parse(row.json, nullptr, false);
    if (!d.is_object() || row.state == "withdrawn") continue;
    const json title = d.value("title", json()), confidence = d.value("confidence", json());
    if (d.value("verdict", json()) == true) verdict = ranked.size();
    ranked.push_back({row.id, confidence.is_number() ? confidence.get<double>() : 0});
    titles.push_back(title.is_string() ? title.get<std::string>() : "");
    if (!row.judged_by.empty()) judgements[row.id] = row.state == "confirmed";
  }
  const JudgedOrder judged = order_of(ranked, verdict, judgements);
  return judged.verdict ? std::optional(titles[*judged.verdict]) : std::nullopt;
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
