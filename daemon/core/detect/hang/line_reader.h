// The values that a rule's holes give of a line: those of its wordings, and of its regexes `reads`. No
// library's wording is here: rules/README.md lists the holes, and any rule may have them. Pure.
#pragma once

#include <re2/re2.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/logs/job_log.h"
#include "core/rules/observed_holes.h"
#include "core/rules/rule.h"

namespace culprit::hang {

using rules::ObservedHole;

// The values of one line. Views of its text and its holes.
class LineValues {
 public:
  // Keeps a value that is there.
  void add(ObservedHole hole, std::string_view value);
  // Takes what is missing here.
  void add(const LineValues& other);
  bool any() const { return any_; }
  // Marks are there or not.
  bool has(ObservedHole hole) const { return !text(hole).empty(); }
  std::string_view text(ObservedHole hole) const { return values_[static_cast<size_t>(hole)]; }
  // Empty without a number; numbers end where the digits end.
  std::optional<int64_t> number(ObservedHole hole) const;
  // Of a number of ranks, tasks or processes.
  std::optional<uint32_t> rank(ObservedHole hole) const;
  // All numbers of a list ("3, 5, 9"). A list that was cut gives no part of a number.
  std::vector<uint32_t> ranks(ObservedHole hole) const;

 private:
  std::array<std::string_view, rules::kObservedHoles> values_ = {};
  bool any_ = false;
};

// Reads lines; compiles the regexes of a rule with its first line. One thread.
class LineReader {
 public:
  // The values of a line of the rule.
  LineValues read(const rules::Rule& rule, const logs::RuleLine& line);
  // Those that the rule's `reads` find in any text.
  LineValues read(const rules::Rule& rule, std::string_view text);

 private:
  struct Reading {
    std::unique_ptr<re2::RE2> regex;
    std::vector<std::pair<ObservedHole, int>> groups;
  };
  const std::vector<Reading>& readings_of(const rules::Rule& rule);
  std::map<const rules::Rule*, std::vector<Reading>> readings_;
  std::vector<re2::StringPiece> groups_;
};

}  // namespace culprit::hang
