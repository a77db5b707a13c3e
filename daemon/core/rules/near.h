// The rules that come nearest to a line, and where each stopped fitting: for whoever asks why a rule does not
// fire. Tries a wording piece by piece, so it costs what no line of a job may cost. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/rules/ruleset.h"

namespace culprit::rules {

struct NearRule {
  enum class Stop : uint8_t {
    kFound,    // the wording stands in the line; a window or a function may still say no
    kGeneral,  // it does, and the rule gives way to a particular one
    kSource,   // it does, and the line is of another source
    kExcept,   // it does, and so does an exception
    kWording,  // it does not
  };
  uint32_t rule = 0;
  Stop stop = Stop::kWording;
  std::string wording;  // the nearest one, as written
  std::string matched;  // what of the message its longest fitting beginning took
  std::string wanted;   // the rest of the wording
  std::string missing;  // a required literal that is not in the line; empty: one is
  std::string other;    // the exception, or the rule that it gives way to
  double nearness = 0;  // 0..1: of the wording's characters
};

// The nearest first, at most `max`. Rules that are switched off are left out.
std::vector<NearRule> nearest_rules(const Ruleset& ruleset, std::string_view message, Source source,
                                    size_t max);

}  // namespace culprit::rules
