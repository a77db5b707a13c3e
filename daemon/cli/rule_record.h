// A daemon's history of each rule: how often the rule fired, in which jobs, and people's judgements. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/remote.h"
#include "core/rules/ruleset.h"

namespace culprit::cli {

struct RuleRecord {
  uint64_t fired = 0, confirmed = 0, refuted = 0;  // diagnoses by the rule, and those that people judged
  TimeNs last_ns = kNoTime;
  std::set<std::string> jobs, healthy_jobs;
  uint64_t lines = 0;                           // lines of stored evidence on which the rule fired
  std::map<std::string, uint64_t> others = {};  // rules on those lines
};
using RuleRecords = std::map<std::string, RuleRecord>;

// From the items of GET /v1/diagnoses and GET /v1/jobs.
RuleRecords records_of(const std::vector<Json>& diagnoses, const std::vector<Json>& jobs);

// Adds one line of stored evidence and the rules that fired on it.
void add_line(const std::set<std::string>& rules, RuleRecords& out);

// Problems of a rule's record, in sentences.
struct RuleRemark {
  std::string rule;
  enum class Kind : uint8_t { kNoisy, kOverlapping, kStale } kind = Kind::kStale;
  std::string sentence;
};
std::string_view to_string(RuleRemark::Kind kind);

// Noisy rules first. `since_ns`: a rule that last fired before it is stale. Only a site's rules can be stale:
// a library has rules for faults that a site may never have.
std::vector<RuleRemark> remarks_on(const rules::Ruleset& set, const RuleRecords& records, TimeNs since_ns);

}  // namespace culprit::cli
