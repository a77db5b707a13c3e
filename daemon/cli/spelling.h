// The name that was probably meant. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace culprit::cli {

// "; did you mean WORD?" with the nearest of the names; empty: none is near, or it is the word itself.
// `quote` stands around the word.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names,
                         std::string_view quote = "");

}  // namespace culprit::cli
