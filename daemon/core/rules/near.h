// The rules nearest to a line, with the reason why each does not match: for users who debug a rule. Matches a
// wording piece by piece, too slow for the lines of a job. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/rules/ruleset.h"

namespace culprit::rules {

struct NearRule {
  enum class Stop : uint8_t {
    kFound,      // the wording matches; a window or a function may still reject the line
    kGeneral,    // it matches, and the rule gives way to a specific one
    kMentioned,  // it matches, and the line only mentions it: set by who read the log
    kSource,     // it matches, and the line has another source
    kExcept,     // it matches, and an exception matches too
    kHeader,     // it matches the line, and a part of that is the line's header, which no rule sees
    kWording,    // the wording does not match
  };
  uint32_t rule = 0;
  Stop stop = Stop::kWording;
  std::string wording;  // the nearest wording, as written
  std::string matched;  // the text that the longest matching prefix of the wording covers
  std::string wanted;   // the rest of the wording
  std::string missing;  // a required literal that the line lacks; empty: it has one
  std::string other;    // the exception, or the specific rule
  double nearness = 0;  // 0..1: share of the wording's characters that match
};

// The line as it stands, and where its message begins.
struct ReadLine {
  std::string_view text;
  size_t message = 0;
};

// Nearest first, at most `max`. Skips rules that are switched off.
std::vector<NearRule> nearest_rules(const Ruleset& ruleset, const ReadLine& line, TextSource source,
                                    size_t max);

// Why no wording of the rule stands in a line that seems to have one: "the message begins after 'rank 13: '".
// Empty: the header hides none.
std::string hidden_by_header(const Rule& rule, std::string_view line);

}  // namespace culprit::rules
