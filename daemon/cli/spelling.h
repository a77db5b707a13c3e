// The name that was probably meant. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace culprit::cli {

// "; did you mean WORD?" with the nearest name; empty: no near name, or an exact match. `quote` surrounds the
// word.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names,
                         std::string_view quote = "");

}  // namespace culprit::cli
