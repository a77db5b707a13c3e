// The first token in a token file's text, for clients: the first word of the first line that is no comment;
// empty: none. Pure; any thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.h"

namespace culprit::app {

inline std::string first_token(std::string_view text) {
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view words = trim(line);
    if (words.empty() || words.starts_with('#')) continue;
    return std::string(words.substr(0, std::min(words.find_first_of(" \t\r"), words.size())));
  }
  return "";
}

}  // namespace culprit::app
