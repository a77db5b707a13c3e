// Selects the line of a confirmed diagnosis that states the cause. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "app/confirm/rule.h"
#include "base/status.h"

namespace culprit::app {

struct Cause {
  std::string pattern;
  Occurrences seen;
  std::set<std::string> hosts;        // that print it in the job
  std::vector<std::string> left_out;  // lines of the same failure that do not state the cause
  std::vector<std::string> notes;
  uint64_t pool_forms = 0;  // tried
  uint64_t examples = 0;
};
// `line`: as in RuleWords.
Result<Cause> cause_of(const Report& report, const Diagnosis& diagnosis, const ConfirmContext& context,
                       const std::string& line = {});

}  // namespace culprit::app
