// Makes a rule from a diagnosis that a person confirmed, so its lines name the cause next time. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "core/detect/logs/pool.h"
#include "model/report.h"

namespace culprit::cli {

struct ConfirmedRule {
  std::string id, text;            // a rule file that loads
  std::vector<std::string> notes;  // one sentence for each part left out, with the reason
};

// `id` empty: built from the component and a hash of the templates. With a pool (null: none), templates of
// successful jobs are left out. Errors: an existing rule matches; no line is suitable; all templates occur in
// successful jobs; the id is invalid.
Result<ConfirmedRule> rule_of(const Report& report, const Diagnosis& diagnosis, const std::string& id,
                              const detect::Pool* pool);

}  // namespace culprit::cli
