// Signs: what the rules found in a job's logs, one finding for each rule that fired. What the job survived,
// and what healthy jobs have, is none. Pure; one thread, because a rule's `when` is asked.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/detect/analysis.h"
#include "core/detect/view.h"
#include "core/rules/run.h"
#include "model/finding.h"

namespace culprit::diagnose {

// All lines of rules, in order of their times; those without any come first.
std::vector<const logs::RuleLine*> in_time(const logs::JobLog& log);

// A line as rules see it. Its writer need not be resolved.
rules::RuleHit hit_of(const logs::JobLog& log, const logs::RuleLine& line);

// What a single hit says, for showing while the job runs: nothing is known of its peers yet.
Finding finding_of(const logs::JobLog& log, const logs::RuleLine& line, const rules::Rule& rule);

struct Signs {
  std::vector<Finding> findings;
  std::vector<std::string> missing;  // as the report's: what is not decided yet
  // Ids of the rules that fired on lines of a template, by cluster (resolved).
  std::map<logs::ClusterId, std::vector<std::string>> rules;
};

// `run` is cleared, and fed with the log's hits in order of their times.
Signs find_signs(const detect::View& view, const detect::Analysis& analysis, rules::RuleRun& run);

}  // namespace culprit::diagnose
