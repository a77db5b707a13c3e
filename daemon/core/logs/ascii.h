// Character classes of ASCII, as header fields and names use them: no locale.
#pragma once

#include <cstdint>
#include <string_view>

namespace culprit::logs {

constexpr size_t npos = std::string_view::npos;
constexpr bool digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
constexpr bool alpha(char c) { return static_cast<unsigned char>((c | 0x20) - 'a') < 26; }
constexpr bool upper(char c) { return c >= 'A' && c <= 'Z'; }

}  // namespace culprit::logs
