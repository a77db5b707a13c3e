// Rules written by `rules new` and `confirm`: a wording out of a message, and texts as Lua has them. Pure.
#pragma once

#include <string>
#include <string_view>

namespace culprit::cli {

// A template of the message, with a hole for each part that differs from line to line; empty where the
// message has nothing fixed.
std::string template_of(std::string_view message);

// In quotes.
std::string lua_text(std::string_view text);

}  // namespace culprit::cli
