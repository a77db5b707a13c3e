// Rule text for `rules new` and `confirm`: a template from a message, and texts as Lua literals. Pure.
#pragma once

#include <string>
#include <string_view>

namespace culprit::app {

// The hole of a template.
constexpr std::string_view kMask = "<*>";

// A template of the message with a hole for each variable part; empty if the message has no fixed part.
std::string template_of(std::string_view message);

// The text as a quoted Lua literal.
std::string lua_text(std::string_view text);

}  // namespace culprit::app
