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
    kMentioned,  // it matches, but the line only mentions it; set by the caller that read the log
    kSource,     // it matches, and the line has another source
    kExcept,     // it matches, and an exception matches too
    kHeader,     // it matches the line only if the header is included, but rules see the message alone
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

// A whole line, and the offset of its message.
struct ReadLine {
  std::string_view text;
  size_t message = 0;
};

// Nearest first, at most `max`. Skips disabled rules.
std::vector<NearRule> nearest_rules(const Ruleset& ruleset, const ReadLine& line, TextSource source,
                                    size_t max);

// If the rule's wording matches only together with the header, explains why: "the message begins after 'rank
// 13: '". Else empty.
std::string hidden_by_header(const Rule& rule, std::string_view line);

}  // namespace culprit::rules
