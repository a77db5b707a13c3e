// The lines that match rules, and uncaught exceptions that match no rule, within limits. One thread.
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
  // See JobLog::renumber_rules.
  void renumber(const std::vector<uint32_t>& to);
  // The last exception of a chain was not caught: the process ends with the first one too. Returns whether a
  // line is kept there.
  bool mark_death(const LogPlace& place);
  // Discards the lines at a place: their exception only passes on the exception that follows.
  void drop(const LogPlace& place);
  // Discards the writer's lines in the source of `end`, from line `begin` on: they are quoted from data.
  void drop_quoted(const LogPlace& end, uint64_t begin);

  const std::vector<RuleLine>& lines() const { return lines_; }  // in order of arrival
  const std::vector<RuleLine>& uncaught() const { return uncaught_; }

 private:
  void count(const RuleLine& line);

  std::vector<RuleLine> lines_, uncaught_;
  std::vector<uint32_t> of_rule_;
  FlatMap<uint32_t> of_writer_{256};  // (writer, rule) -> kept
  size_t bytes_ = 0;
};

// Changes the rule numbers of lines, as JobLog::renumber_rules.
void renumber(std::vector<RuleLine>& lines, const std::vector<uint32_t>& to);

}  // namespace culprit::logs
