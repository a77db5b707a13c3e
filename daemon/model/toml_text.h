// A check of untrusted TOML before parsing. toml++ creates a table for each part of a dotted key and frees
// tables recursively, without a limit. Pure; any thread.
#pragma once

#include <string_view>

namespace culprit {

// Whether a key has too many parts for safe parsing.
bool toml_nested_too_deeply(std::string_view text);

}  // namespace culprit
