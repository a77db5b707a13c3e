// Classes of a message's bytes, 64 at a time, and the few three-letter words that belong to a number. Only
// for mask.cc; pure, any thread.
#pragma once

#include <cstdint>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace culprit::logs {

struct Bits {
  uint64_t space;      // space, tab and other blank control characters
  uint64_t special;    // digits, '/', '\\', '<', escape, an empty pair of brackets
  uint64_t irregular;  // whitespace other than a single space
};

inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

#if defined(__SSE2__)
inline uint64_t mask_of(__m128i v) { return static_cast<uint32_t>(_mm_movemask_epi8(v)); }

// Bytes in [low, low + span].
inline __m128i in_range(__m128i v, char low, char span) {
  const __m128i moved = _mm_sub_epi8(v, _mm_set1_epi8(low));
  return _mm_cmpeq_epi8(_mm_min_epu8(moved, _mm_set1_epi8(span)), moved);
}

inline Bits classify64(const char* p) {
  uint64_t blank = 0, plain = 0, special = 0, open = 0, close = 0;
  for (int i = 0; i < 4; ++i) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i);
    const __m128i low = _mm_or_si128(v, _mm_set1_epi8(0x20));  // '[' as '{', ']' as '}'
    const auto eq = [](__m128i a, char c) { return _mm_cmpeq_epi8(a, _mm_set1_epi8(c)); };
    const __m128i rare = _mm_or_si128(_mm_or_si128(eq(v, '<'), eq(v, '\\')), eq(v, '\x1b'));
    plain |= mask_of(eq(v, ' ')) << (16 * i);
    blank |= mask_of(in_range(v, '\t', 4)) << (16 * i);
    special |= mask_of(_mm_or_si128(in_range(v, '/', 10), rare)) << (16 * i);
    open |= mask_of(_mm_or_si128(eq(v, '('), eq(low, '{'))) << (16 * i);
    close |= mask_of(_mm_or_si128(eq(v, ')'), eq(low, '}'))) << (16 * i);
  }
  // The block's edge may cut a pair of brackets: a closing bracket as the first byte counts too.
  const uint64_t space = plain | blank;
  return {space, special | (close & (open << 1 | 1)), blank | (space & (space << 1))};
}
#else
inline Bits classify64(const char* p) {
  Bits bits{0, 0, 0};
  for (int i = 0; i < 64; ++i) {
    const char c = p[i];
    const uint64_t bit = uint64_t{1} << i;
    if (is_space(c)) bits.space |= bit;
    if ((c >= '/' && c <= '9') || c == '<' || c == '\\' || c == '\x1b') bits.special |= bit;
    const bool close = c == ')' || c == ']' || c == '}';
    if (close && (i == 0 || p[i - 1] == '(' || p[i - 1] == '[' || p[i - 1] == '{')) bits.special |= bit;
    if (is_space(c) && (c != ' ' || (i > 0 && is_space(p[i - 1])))) bits.irregular |= bit;
  }
  return bits;
}
#endif

// A unit, in the scale or plural that a formatter chose: "93.0 B" and "1.2 GB", "1 second" and "2 seconds"
// have one template.
inline bool is_unit(std::string_view word) {
  constexpr auto number = [](std::string_view text) {
    uint64_t value = 0;
    for (const char c : text) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  };
  if (word.empty() || word.size() > 7) return false;
  switch (number(word)) {
    case number("B"):
    case number("kB"):
    case number("KB"):
    case number("MB"):
    case number("GB"):
    case number("TB"):
    case number("PB"):
    case number("KiB"):
    case number("MiB"):
    case number("GiB"):
    case number("TiB"):
    case number("PiB"):
    case number("ns"):
    case number("us"):
    case number("ms"):
    case number("s"):
    case number("sec"):
    case number("secs"):
    case number("second"):
    case number("seconds"):
    case number("min"):
    case number("mins"):
    case number("minute"):
    case number("minutes"):
    case number("hour"):
    case number("hours"):
    case number("day"):
    case number("days"):
    case number("byte"):
    case number("bytes"):
      return true;
    default:
      return false;
  }
}

// Three letters as one number.
constexpr uint32_t letters3(const char* p) {
  return static_cast<uint32_t>(static_cast<uint8_t>(p[0])) |
         static_cast<uint32_t>(static_cast<uint8_t>(p[1])) << 8 |
         static_cast<uint32_t>(static_cast<uint8_t>(p[2])) << 16;
}

inline bool is_month(const char* p) {
  switch (letters3(p)) {
    case letters3("Jan"):
    case letters3("Feb"):
    case letters3("Mar"):
    case letters3("Apr"):
    case letters3("May"):
    case letters3("Jun"):
    case letters3("Jul"):
    case letters3("Aug"):
    case letters3("Sep"):
    case letters3("Oct"):
    case letters3("Nov"):
    case letters3("Dec"):
      return true;
    default:
      return false;
  }
}

inline bool is_weekday(const char* p) {
  switch (letters3(p)) {
    case letters3("Mon"):
    case letters3("Tue"):
    case letters3("Wed"):
    case letters3("Thu"):
    case letters3("Fri"):
    case letters3("Sat"):
    case letters3("Sun"):
      return true;
    default:
      return false;
  }
}

}  // namespace culprit::logs
