// A rule out of a diagnosis that a person confirmed: the next time, its lines name the cause at once. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "core/detect/pool.h"
#include "model/report.h"

namespace culprit::cli {

struct ConfirmedRule {
  std::string id, text;            // a rule file that loads
  std::vector<std::string> notes;  // what was left out and why, a sentence each
};

// `id`: empty: made of what broke and of the wordings. With a pool (null: none) wordings that successful jobs
// have are left out. Errors: a rule knows it already; no line of it is fit for a rule; all of them stand in
// successful jobs; the id is none.
Result<ConfirmedRule> rule_of(const Report& report, const Diagnosis& diagnosis, const std::string& id,
                              const detect::Pool* pool);

}  // namespace culprit::cli
