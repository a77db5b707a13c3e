// What a rule's line is about, for the headline: which module, file, peer, rank. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/logs/job_log.h"
#include "core/rules/rule.h"

namespace culprit::diagnose {

// The text of a hole in a line; empty where the rule has none of that name.
std::string_view hole_of(const rules::Rule& rule, const logs::RuleLine& line, std::string_view name);

// The number that a hole's text begins with.
std::optional<uint32_t> number_in(std::string_view text);

// The rule's title for this line. A title without holes is followed by the line's named holes, or where the
// rule names none, by the line's own words in quotes.
std::string headline(const rules::Rule& rule, const logs::RuleLine& line);

}  // namespace culprit::diagnose
