// Applies people's judgements of diagnoses to a job's report: a confirmed diagnosis leads, a refuted one
// never does. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/report.h"

namespace culprit::app {

using Judgements = std::map<std::string, bool>;  // by the diagnosis's id: whether it was right

struct RankedDiagnosis {
  std::string id;
  double confidence = 0;
};

// The new order of the diagnoses, by their old indices, and the old index of the verdict.
struct JudgedOrder {
  std::vector<size_t> order;
  std::optional<size_t> verdict;
};
JudgedOrder order_of(const std::vector<RankedDiagnosis>& diagnoses, std::optional<size_t> verdict,
                     const Judgements& judgements);

// Reorders the diagnoses and chooses the verdict.
void apply_judgements(const Judgements& judgements, Report& report);

// Does so in a finished report: hosts that refuted diagnoses alone name are no suspects. Where the verdict
// changed, what follows from it is concluded again.
void judge_report(const Judgements& judgements, Report& report);
// conclude() for a report that has headlines: these are kept, since those of an older version's report name
// places that are not in its JSON form. State, headline and restart advice of the whole report are new.
void conclude_again(Report& report);

}  // namespace culprit::app
