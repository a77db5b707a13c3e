// Applies people's judgements of diagnoses to a job's report: a confirmed diagnosis leads, a refuted one
// never does. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/report.h"

namespace culprit::app {

using Judgements = std::map<std::string, bool>;  // diagnosis id to judgement: true if the diagnosis was right

struct RankedDiagnosis {
  std::string id;
  double confidence = 0;
};

// The new order of the diagnoses as old indices, and the old index of the verdict.
struct JudgedOrder {
  std::vector<size_t> order;
  std::optional<size_t> verdict;
};
JudgedOrder order_of(const std::vector<RankedDiagnosis>& diagnoses, std::optional<size_t> verdict,
                     const Judgements& judgements);

// Reorders the diagnoses and chooses the verdict.
void apply_judgements(const Judgements& judgements, Report& report);

// Applies judgements to a finished report: hosts named only by refuted diagnoses are no suspects. If the
// verdict changed, its consequences are derived again.
void judge_report(const Judgements& judgements, Report& report);
// conclude() for a report with headlines. The headlines are kept, since those of an older version's report
// name places that its JSON form lacks. State, headline and restart advice of the whole report are new.
void conclude_again(Report& report);

}  // namespace culprit::app
