#include "base/shell.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace culprit {

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "_-./:@%+=,";
  const auto plain = [&](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kPlain.find(static_cast<char>(c)) != kPlain.npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return std::string(text);
  const bool visible = to_terminal(text) == text && text.find('\t') == text.npos;
  std::string out = visible ? "'" : "$'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (visible)
      out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    else if (byte < 0x20 || byte > 0x7e || c == '\'' || c == '\\')
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + "'";
}

std::string last_argument(std::string_view text) {
  return (text.starts_with('-') ? "-- " : "") + shell_word(text);
}

}  // namespace culprit
