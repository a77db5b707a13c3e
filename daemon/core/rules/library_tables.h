// Tables built at build time from the shipped library: the analysis of its wordings, and the compiled matcher
// of their literals. A start then needs neither RE2's analysis nor Vectorscan's compiler. Wordings and
// literal sets outside the library are analysed and compiled at the start. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "core/rules/pattern.h"
#include "core/rules/ruleset.h"

namespace culprit::rules {

// Only for the build: serialises the bytes that library_tables() returns in the programs. Errors come from
// Vectorscan.
Result<std::string> make_tables(const Ruleset& shipped);

// The analysis of a wording of the library; none for other wordings.
std::optional<Wording> library_wording(std::string_view regex);

// Vectorscan's serialised database if it was built from these literals (Matcher::literal_hash); else empty.
std::string_view library_database(uint64_t literal_hash);

}  // namespace culprit::rules
