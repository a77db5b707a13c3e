// What people said of a job's diagnoses, applied to its report: a confirmed diagnosis leads, a refuted one
// leads nothing. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/report.h"

namespace culprit::app {

using Judgements = std::map<std::string, bool>;  // by the diagnosis's id: it was right

struct RankedDiagnosis {
  std::string id;
  double confidence = 0;
};

// The order in which they stand, and which of them (by its place before) is the verdict.
struct JudgedOrder {
  std::vector<size_t> order;
  std::optional<size_t> verdict;
};
JudgedOrder order_of(const std::vector<RankedDiagnosis>& diagnoses, std::optional<size_t> verdict,
                     const Judgements& judgements);

// Reorders the diagnoses and chooses the verdict.
void apply_judgements(const Judgements& judgements, Report& report);

}  // namespace culprit::app
