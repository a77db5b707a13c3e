// Words and numbers of a log line, for the readers of this folder. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace culprit::hang {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool has(std::string_view text, std::string_view words) { return text.find(words) != text.npos; }
// The text after `key` in `text`; empty: `key` is absent.
inline std::string_view after(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  return at == text.npos ? std::string_view() : text.substr(at + key.size());
}

}  // namespace culprit::hang
