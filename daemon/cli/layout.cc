#include "cli/layout.h"

#include <algorithm>
#include <cstdint>

namespace culprit::cli {
namespace {

struct Character {
  size_t at = 0, size = 0, columns = 1;
};

uint32_t code_point(std::string_view c) {
  if (c.size() == 1) return static_cast<unsigned char>(c[0]);
  const uint32_t lead_bits = c.size() == 2 ? 0x1f : c.size() == 3 ? 0x0f : 0x07;
  uint32_t point = static_cast<unsigned char>(c[0]) & lead_bits;
  for (size_t i = 1; i < c.size(); ++i) point = point << 6 | (static_cast<unsigned char>(c[i]) & 0x3f);
  return point;
}

// East Asian Width W and F as ranges, like wcwidth, which in the C library depends on the locale.
size_t columns_of_point(uint32_t c) {
  if (c < 0x300) return 1;
  if (c <= 0x36f || (c >= 0x200b && c <= 0x200d) || (c >= 0xfe00 && c <= 0xfe0f)) return 0;
  const bool wide =
      (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
      (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
      (c >= 0x1f300 && c <= 0x1f64f) || (c >= 0x1f900 && c <= 0x1f9ff) || (c >= 0x20000 && c <= 0x3fffd);
  return wide ? 2 : 1;
}

std::vector<Character> characters_of(std::string_view text) {
  std::vector<Character> out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    out.push_back({i, end - i, columns_of_point(code_point(text.substr(i, std::min<size_t>(end - i, 4))))});
    i = end;
  }
  return out;
}

// Bytes of the longest prefix of at most `width` columns and at least one character.
size_t prefix_bytes(std::string_view text, size_t width) {
  size_t columns = 0, bytes = 0;
  for (const Character& c : characters_of(text)) {
    if (bytes > 0 && columns + c.columns > width) break;
    columns += c.columns;
    bytes += c.size;
  }
  return bytes;
}

std::vector<std::string> wrapped(std::string_view text, size_t width, bool hard) {
  std::vector<std::string> lines(1);
  size_t used = 0;
  while (!text.empty()) {
    const size_t gap = std::min(text.find_first_not_of(' '), text.size());
    const size_t end = std::min(text.find(' ', gap), text.size());
    std::string_view word = text.substr(gap, end - gap);
    const size_t columns = columns_of(word);
    if (used > 0 && used + gap + columns > width) {
      lines.emplace_back();
      used = 0;
    } else if (gap < text.size()) {
      lines.back().append(gap, ' ');
      used += gap;
    }
    while (hard && used + columns_of(word) > width && !word.empty()) {
      const size_t bytes = prefix_bytes(word, width > used ? width - used : 1);
      lines.back() += word.substr(0, bytes);
      word.remove_prefix(bytes);
      if (word.empty()) break;
      lines.emplace_back();
      used = 0;
    }
    lines.back() += word;
    used += columns_of(word);
    text.remove_prefix(end);
  }
  return lines;
}

}  // namespace

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  for (const Character& c : characters_of(text)) columns += c.columns;
  return columns;
}

std::vector<std::string> wrap(std::string_view text, size_t width) { return wrapped(text, width, false); }
std::vector<std::string> wrap_hard(std::string_view text, size_t width) { return wrapped(text, width, true); }

std::string shorten_around(std::string_view text, size_t focus, size_t width) {
  if (text.size() <= width || columns_of(text) <= width) return std::string(text);
  if (width < 3) return "…";
  const std::vector<Character> characters = characters_of(text);
  size_t begin = 0;
  while (begin + 1 < characters.size() && characters[begin + 1].at <= focus) ++begin;
  const size_t columns_before = columns_of(text.substr(0, characters[begin].at));
  // The focus and the words after it are most important: they get three quarters of the width.
  if (columns_before <= width / 4) {
    begin = 0;
  } else {
    size_t lead = 0;
    while (begin > 0 && lead + characters[begin - 1].columns <= width / 4)
      lead += characters[--begin].columns;
  }
  std::string_view rest = text.substr(characters[begin].at);
  // Near the end of the text the window moves back to fill the width.
  while (begin > 0 && columns_of(rest) + characters[begin - 1].columns <= width - 1) {
    rest = text.substr(characters[--begin].at);
  }
  const size_t room = width - (begin > 0 ? 1 : 0);
  std::string out = begin > 0 ? "…" : "";
  if (columns_of(rest) <= room) return out.append(rest);
  return out.append(rest.substr(0, prefix_bytes(rest, room - 1))) + "…";
}

std::string padded(std::string_view text, size_t width) {
  std::string out(text);
  const size_t columns = columns_of(text);
  if (columns < width) out.append(width - columns, ' ');
  return out;
}

std::string inked(std::string_view text, Ink ink, bool color) {
  if (!color || ink == Ink::kPlain || text.empty()) return std::string(text);
  const char* code = "";
  switch (ink) {
    case Ink::kPlain:
      break;
    case Ink::kBold:
      code = "\x1b[1m";
      break;
    case Ink::kDim:
      code = "\x1b[2m";
      break;
    case Ink::kAlarm:
      code = "\x1b[1;31m";
      break;
    case Ink::kCaution:
      code = "\x1b[1;33m";
      break;
    case Ink::kAccent:
      code = "\x1b[36m";
      break;
  }
  return std::string(code).append(text) + "\x1b[0m";
}

}  // namespace culprit::cli
