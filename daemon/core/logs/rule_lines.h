// The lines that match rules, and uncaught exceptions that match no rule, within limits. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "core/logs/job_log.h"
#include "core/logs/retained_lines.h"

namespace culprit::logs {

class RuleLines {
 public:
  RuleLines();

  // A line whose rule is kNoRule is an uncaught exception. `form`: hash of its form.
  void add(RuleLine line, uint64_t form);
  // Drops what does not fit. Call before reading the lines; repeatable.
  void trim();
  // See JobLog::renumber_rules.
  void renumber(const std::vector<uint32_t>& to) { lines_.renumber(to); }
  // Marks the first exception of a chain as fatal, since the last one was not caught. Returns whether a line
  // is retained at the place.
  bool mark_death(const LogPlace& place);
  // Sets the code place of a rule's line, from the frames below it.
  void name_code(const LogPlace& place, const CodePlace& code) { lines_.name_code(place, code); }
  // Discards the lines at a place: their exception only passes on the one that follows in the log.
  void drop(const LogPlace& place) { drop_quoted(place, place.line); }
  // Discards the writer's lines in the source of `end`, from line `begin` on: they are quoted from data.
  void drop_quoted(const LogPlace& end, uint64_t begin);

  const RetainedLines& of_rules() const { return lines_; }
  const RetainedLines& uncaught() const { return uncaught_; }

 private:
  RetainedLines lines_, uncaught_;
};

// Changes the rule numbers of lines; see JobLog::renumber_rules.
void renumber(std::vector<RuleLine>& lines, const std::vector<uint32_t>& to);

}  // namespace culprit::logs
