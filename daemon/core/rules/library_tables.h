// What is made of the shipped library at build time: the analysis of its wordings and the matcher of their
// literals. So a start needs neither RE2's analysis nor Vectorscan's compiler. Other wordings and other sets
// of literals are analysed and compiled at the start. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "core/rules/pattern.h"
#include "core/rules/ruleset.h"

namespace culprit::rules {

// For the build alone: the bytes that library_tables() returns in the programs. An error comes from
// Vectorscan.
Result<std::string> make_tables(const Ruleset& shipped);

// The analysis of a wording of the library; none for another one.
std::optional<Wording> library_wording(std::string_view regex);

// Vectorscan's serialised database, if it was made of these literals (Matcher::literal_hash); else empty.
std::string_view library_database(uint64_t literal_hash);

}  // namespace culprit::rules
