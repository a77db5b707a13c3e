// ASCII character classes, independent of the locale: for header fields and names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace culprit {

constexpr size_t npos = std::string_view::npos;
constexpr bool digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
constexpr bool alpha(char c) { return static_cast<unsigned char>((c | 0x20) - 'a') < 26; }
constexpr bool upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr char lower(char c) { return upper(c) ? static_cast<char>(c + 32) : c; }

// -1: no hexadecimal digit.
constexpr int hex_value(char c) {
  if (digit(c)) return c - '0';
  const char low = lower(c);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

constexpr bool all_digits(std::string_view text) {
  for (const char c : text)
    if (!digit(c)) return false;
  return !text.empty();
}

// The value of the `count` digits at `pos`.
constexpr uint64_t digits_value(std::string_view line, size_t pos, size_t count) {
  uint64_t n = 0;
  for (size_t i = 0; i < count; ++i) n = n * 10 + static_cast<uint64_t>(line[pos + i] - '0');
  return n;
}

// The value of a number; of a longer number, the value of its first nine digits.
constexpr uint32_t digits_value(std::string_view digits) {
  return static_cast<uint32_t>(digits_value(digits, 0, digits.size() < 9 ? digits.size() : 9));
}

}  // namespace culprit
