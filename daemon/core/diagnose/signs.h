// Signs: findings from rules, one per rule that matched the job's logs. A fault that the job survived, or
// that healthy jobs also have, is no sign. Pure; one thread, because rules have `when` functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/detect/logs/analysis.h"
#include "core/detect/logs/view.h"
#include "core/rules/run.h"
#include "model/finding.h"

namespace culprit::diagnose {

// All rule lines by time; lines without a time come first.
std::vector<const logs::RuleLine*> in_time(const logs::JobLog& log);

// The rule engine's view of a line. Its writer need not be resolved.
rules::RuleHit hit_of(const logs::JobLog& log, const logs::RuleLine& line);

// The content of a rule's line, without writers, times and evidence.
Finding describe(const rules::Rule& rule, const logs::RuleLine& line);

// The finding of a single hit while the job runs, without knowledge of its peers.
Finding finding_of(const logs::JobLog& log, const logs::RuleLine& line, const rules::Rule& rule);

// A sign that does not prove a failure: the job may continue, or a kernel also reports other processes.
struct UnprovenSign {
  Finding finding;
  std::string missing;  // the open question; empty: none
};

struct Signs {
  std::vector<Finding> findings;
  std::vector<UnprovenSign> unproven;
  // Rule findings that are no signs: warnings, planned changes, and trouble that the job survived. Without
  // weight; they may explain measurements.
  std::vector<Finding> witnesses;
  std::vector<std::string> missing;  // as in the report: questions that are still open
  std::vector<std::string> notes;    // as in the report
  uint64_t notes_cut = 0;            // beyond the limit
  // Ids of the rules that fired on lines of a template, by cluster (resolved).
  std::map<logs::ClusterId, std::vector<std::string>> rules;
  std::map<uint32_t, TimeNs> torn_down;  // see detect::Analysis
};

// Runs the rules with source `finding` on all detectors' findings, after find_signs() with the same run. Each
// repeated finding of a plugin is a hit. A matched rule adds its fault; the detector's finding then supports
// it. If the job ended well, only measurements count: slowness, or NaN.
void apply_rules_to_findings(rules::RuleRun& run, bool ended_well, std::vector<Finding>& findings);
// The detectors' findings in the form that these rules read.
std::vector<SeenFinding> seen_findings(const std::vector<Finding>& findings, bool ended_well);

// Clears `run`, and feeds it the log's hits in time order.
Signs find_signs(const detect::View& view, const detect::Analysis& analysis, rules::RuleRun& run);

}  // namespace culprit::diagnose
