#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/ascii.h"

namespace culprit {
namespace {

// Length of the character at `at`; 0 if the bytes there are not valid UTF-8 (RFC 3629).
size_t character_size(std::string_view s, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + size > s.size()) return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return size;
}

uint32_t code_point(std::string_view c) {
  const auto b = [&](size_t i) { return static_cast<unsigned char>(c[i]); };
  if (c.size() == 1) return b(0);
  if (c.size() == 2) return (b(0) & 0x1fu) << 6 | (b(1) & 0x3fu);
  if (c.size() == 3) return (b(0) & 0x0fu) << 12 | (b(1) & 0x3fu) << 6 | (b(2) & 0x3fu);
  return (b(0) & 0x07u) << 18 | (b(1) & 0x3fu) << 12 | (b(2) & 0x3fu) << 6 | (b(3) & 0x3fu);
}

// Invisible characters, which can hide text from people while programs read it: direction marks, zero-width
// characters, fillers, variation selectors, tags.
bool is_invisible(uint32_t c) {
  constexpr std::pair<uint32_t, uint32_t> kRanges[] = {
      {0x00ad, 0x00ad},   {0x034f, 0x034f},  {0x061c, 0x061c}, {0x115f, 0x1160}, {0x17b4, 0x17b5},
      {0x180b, 0x180f},   {0x200b, 0x200f},  {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
      {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},  {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3},
      {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
  return c >= 0xad && std::any_of(std::begin(kRanges), std::end(kRanges),
                                  [c](const auto& range) { return c >= range.first && c <= range.second; });
}

bool is_hidden_control(uint32_t c) {
  return (c < 0x20 && c != '\t') || (c >= 0x7f && c <= 0x9f) || (c >= 0x200e && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x061c || c == 0xfeff ||
         c == 0x200b || (c >= 0xe0000 && c <= 0xe007f);
}

template <class Emit>
void for_each_character(std::string_view bytes, Emit emit) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = character_size(bytes, at);
    emit(size ? bytes.substr(at, size) : bytes.substr(at, 1), size != 0);
    at += size ? size : 1;
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Removes the leading digits from `text` and returns them without leading zeros.
std::string_view take_number(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  std::string_view number = text.substr(0, end);
  text.remove_prefix(end);
  while (number.size() > 1 && number[0] == '0') number.remove_prefix(1);
  return number;
}

}  // namespace

std::string to_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for_each_character(bytes, [&](std::string_view c, bool valid) { out += valid ? c : "\xef\xbf\xbd"; });
  return out;
}

std::string to_terminal(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for_each_character(bytes, [&](std::string_view c, bool valid) {
    if (!valid) {
      out += "\xef\xbf\xbd";
    } else if (const uint32_t point = code_point(c); !is_hidden_control(point)) {
      out += c;
    } else {
      out += point < 0x100 ? fmt::format("\\x{:02x}", point) : fmt::format("\\u{:04x}", point);
    }
  });
  return out;
}

std::string without_invisible(std::string_view bytes, size_t* left_out) {
  std::string out;
  out.reserve(bytes.size());
  for_each_character(bytes, [&](std::string_view c, bool valid) {
    if (!valid || !is_invisible(code_point(c)))
      out += c;
    else if (left_out)
      ++*left_out;
  });
  return out;
}

std::string to_html(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (char c : to_terminal(bytes)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string shorten(std::string_view text, size_t max) {
  if (text.size() <= max) return std::string(text);
  size_t end = max > 3 ? max - 3 : 0;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

std::string shorten_middle(std::string_view text, size_t max) {
  constexpr std::string_view kLeftOut = " … ";
  if (text.size() <= max) return std::string(text);
  const size_t half = (max - std::min(max, kLeftOut.size())) / 2;
  const auto within = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  size_t end = half, begin = text.size() - half;
  while (end > 0 && within(end)) --end;
  while (begin < text.size() && within(begin)) ++begin;
  return fmt::format("{}{}{}", text.substr(0, end), kLeftOut, text.substr(begin));
}

bool natural_less(std::string_view a, std::string_view b) {
  std::string_view x = a, y = b;
  while (!x.empty() && !y.empty()) {
    if (is_digit(x[0]) && is_digit(y[0])) {
      const std::string_view m = take_number(x), n = take_number(y);
      if (m.size() != n.size()) return m.size() < n.size();
      if (m != n) return m < n;
      continue;
    }
    if (x[0] != y[0]) return static_cast<unsigned char>(x[0]) < static_cast<unsigned char>(y[0]);
    x.remove_prefix(1);
    y.remove_prefix(1);
  }
  if (x.empty() != y.empty()) return x.empty();
  return a < b;  // equal except for leading zeros
}

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

size_t find_text(std::string_view text, std::string_view part, size_t from) {
#if defined(__SSE2__)
  if (part.size() >= 2 && text.size() >= part.size() + 15) {
    // Finds positions where first and last byte match, 16 at a time; the last block overlaps the previous
    // one.
    const __m128i first = _mm_set1_epi8(part.front()), last = _mm_set1_epi8(part.back());
    const size_t last_block = text.size() - part.size() - 15;
    for (; from < last_block + 16; from += 16) {
      const size_t block = std::min(from, last_block);
      const char* const at = text.data() + block;
      const auto load = [&](size_t to) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + to)); };
      const __m128i fits =
          _mm_and_si128(_mm_cmpeq_epi8(load(0), first), _mm_cmpeq_epi8(load(part.size() - 1), last));
      auto bits = static_cast<unsigned>(_mm_movemask_epi8(fits)) & (~0u << (from - block));
      for (; bits != 0; bits &= bits - 1) {
        const auto bit = static_cast<size_t>(std::countr_zero(bits));
        if (std::memcmp(at + bit + 1, part.data() + 1, part.size() - 1) == 0) return block + bit;
      }
    }
    return std::string_view::npos;
  }
#endif
  return text.find(part, from);
}

void lower_ascii(std::string_view text, char* to) {
  size_t at = 0;
#if defined(__SSE2__)
  for (; at + 16 <= text.size(); at += 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    const __m128i letter = _mm_sub_epi8(v, _mm_set1_epi8('A'));
    const __m128i upper = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(25)), letter);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_add_epi8(v, _mm_and_si128(upper, _mm_set1_epi8('a' - 'A'))));
  }
#endif
  for (; at < text.size(); ++at) to[at] = lower(text[at]);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string counted(uint64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string format_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) value /= 1000, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace culprit
