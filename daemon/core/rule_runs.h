// The state of a job's rules, twice: by arrival, for immediate findings of a live job, and by time, for
// reports. Owned by the engine; one thread; pure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/logs/job_log.h"
#include "core/rules/run.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::core {

class RuleRuns {
 public:
  // Null `rules`: none. `watch` is borrowed; null: none.
  RuleRuns(std::shared_ptr<rules::Ruleset> rules, rules::FunctionWatch* watch, bool live);

  // As in RuleRun, for both orders.
  void quarantine(const std::string& rule);
  void overrun(const std::string& rule);
  // Also renumbers the rules in the log. Its lines of rules with equal id and text stay.
  void replace(std::shared_ptr<rules::Ruleset> rules, logs::JobLog& log);

  // Live: the log's new lines at which a rule of severity error or fatal fired.
  std::vector<Finding> find_new(const logs::JobLog& log);
  const rules::Ruleset* ruleset() const { return rules_.get(); }
  rules::RuleRun* in_time() { return in_time_ ? &*in_time_ : nullptr; }  // null: no rules
  // The log's dropped lines that may have been failures: of rules of severity error or fatal, or uncaught
  // exceptions.
  uint64_t dropped_faults(const logs::JobLog& log) const;
  // Adds a problem for each rule that could not run, and for hits outside of every window.
  void add_troubles(std::vector<Problem>& out) const;

 private:
  std::shared_ptr<rules::Ruleset> rules_;
  const bool live_;
  std::optional<rules::RuleRun> on_arrival_, in_time_;  // on_arrival_: live only
  uint64_t looked_at_ = 0;                              // rule lines added to the log, by find_new()
};

}  // namespace culprit::core
