// The lines in which rules were found, and the uncaught exceptions that no rule knows, within bounds. One
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "core/logs/job_log.h"

namespace culprit::logs {

class RuleLines {
 public:
  // False if there is no room for it. A line whose rule is kNoRule is an uncaught exception.
  bool add(RuleLine line);
  // As JobLog::renumber_rules.
  void renumber(const std::vector<uint32_t>& to);
  // The last exception of a chain was not caught: the process ends with the first as well. Whether one is
  // kept.
  bool mark_death(const LogPlace& place);
  // What was found last at a place only passes on what follows.
  void drop(const LogPlace& place);
  // The writer's lines in the source of `end`, from line `begin` on, proved to be quoted from data.
  void drop_quoted(const LogPlace& end, uint64_t begin);

  const std::vector<RuleLine>& lines() const { return lines_; }  // in the order in which they came
  const std::vector<RuleLine>& uncaught() const { return uncaught_; }

 private:
  void count(const RuleLine& line);

  std::vector<RuleLine> lines_, uncaught_;
  std::vector<uint32_t> of_rule_;
  FlatMap<uint32_t> of_writer_{256};  // (writer, rule) -> kept
  size_t bytes_ = 0;
};

// Gives the lines the numbers of other rules, as JobLog::renumber_rules.
void renumber(std::vector<RuleLine>& lines, const std::vector<uint32_t>& to);

}  // namespace culprit::logs
