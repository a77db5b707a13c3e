// TOML of others. toml++ makes a table for each part of a dotted key and frees them recursively, without a
// limit. Pure; any thread.
#pragma once

#include <string_view>

namespace culprit {

// Whether a key has so many parts that the text must not be parsed.
bool toml_nested_too_deeply(std::string_view text);

}  // namespace culprit
