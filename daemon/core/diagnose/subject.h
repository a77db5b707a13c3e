// The subject of a rule's line, for the headline: module, file, peer, rank. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/logs/job_log.h"
#include "core/rules/rule.h"

namespace culprit::diagnose {

// The text of a hole in a line; empty if the rule has no hole of that name.
std::string_view hole_of(const rules::Rule& rule, const logs::RuleLine& line, std::string_view name);

// The number at the beginning of a hole's text.
std::optional<uint32_t> number_in(std::string_view text);

// The rule's title for this line. A title without holes is followed by the line's named holes. If the rule
// names no holes, the line's own text follows in quotes.
std::string headline(const rules::Rule& rule, const logs::RuleLine& line);

}  // namespace culprit::diagnose
