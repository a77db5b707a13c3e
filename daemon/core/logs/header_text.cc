#include "core/logs/header_text.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "core/logs/host_name.h"

namespace culprit::logs {
namespace {

constexpr size_t kWordMax = 256;
constexpr size_t kLocationMax = 160;

constexpr auto kWordChars = [] {
  std::array<bool, 256> chars{};
  for (int c = 0; c < 256; ++c) {
    const char ch = static_cast<char>(c);
    chars[static_cast<size_t>(c)] =
        digit(ch) || alpha(ch) || ch == '_' || ch == '.' || ch == '-' || ch == '$';
  }
  return chars;
}();

constexpr auto kPathChars = [] {
  std::array<bool, 256> chars = kWordChars;
  chars['/'] = chars['<'] = chars['>'] = chars['@'] = true;
  return chars;
}();

// Up to eight bytes as one integer, for fast comparison.
constexpr uint64_t packed(std::string_view text) {
  uint64_t word = 0;
  for (char c : text) word = word << 8 | static_cast<unsigned char>(c);
  return word;
}

bool is_source_extension(std::string_view extension) {
  if (extension.size() > 5) return false;
  switch (packed(extension)) {
    case packed("py"):
    case packed("cc"):
    case packed("cpp"):
    case packed("go"):
    case packed("c"):
    case packed("cu"):
    case packed("h"):
    case packed("hpp"):
    case packed("rs"):
    case packed("cxx"):
    case packed("java"):
    case packed("js"):
    case packed("ts"):
    case packed("cuh"):
    case packed("pyx"):
    case packed("inl"):
    case packed("scala"):
    case packed("sh"):
      return true;
    default:
      return false;
  }
}

struct LevelName {
  std::string_view name;
  Level level;
};
constexpr LevelName kLevels[] = {
    {"INFO", Level::kInfo},     {"WARNING", Level::kWarning},  {"ERROR", Level::kError},
    {"WARN", Level::kWarning},  {"DEBUG", Level::kDebug},      {"ERR", Level::kError},
    {"FATAL", Level::kFatal},   {"CRITICAL", Level::kFatal},   {"NOTICE", Level::kInfo},
    {"TRACE", Level::kDebug},   {"EVENT", Level::kInfo},       {"CRIT", Level::kFatal},
    {"SEVERE", Level::kError},  {"EXCEPTION", Level::kError},  {"ALERT", Level::kFatal},
    {"EMERG", Level::kFatal},   {"PANIC", Level::kFatal},      {"FAILURE", Level::kFatal},
    {"VERBOSE", Level::kDebug}, {"INFORMATION", Level::kInfo}, {"FINE", Level::kDebug},
};

// For each first letter: bit set of the lengths of levels with that letter. Most words fail this test.
constexpr auto kLevelSizes = [] {
  std::array<uint16_t, 256> sizes{};
  for (const LevelName& level : kLevels) {
    const auto bit = static_cast<uint16_t>(1u << level.name.size());
    sizes[static_cast<unsigned char>(level.name[0])] |= bit;
    sizes[static_cast<unsigned char>(level.name[0] | 0x20)] |= bit;
  }
  return sizes;
}();

}  // namespace

Level level_word(std::string_view word) {
  if (word.size() < 3 || word.size() > 11) return Level::kNone;
  if ((kLevelSizes[static_cast<unsigned char>(word[0])] >> word.size() & 1) == 0) return Level::kNone;
  // Accepts "INFO", "info" and "Info", not "iNFO": the first letter has any case, the others have one case.
  const bool small = (word[1] & 0x20) != 0;
  for (const LevelName& level : kLevels) {
    if (level.name.size() != word.size() || level.name[0] != (word[0] & ~0x20)) continue;
    if (!small && (word[0] & 0x20)) return Level::kNone;
    bool same = true;
    for (size_t i = 1; i < word.size() && same; ++i)
      same = word[i] == (small ? level.name[i] | 0x20 : level.name[i]);
    if (same) return level.level;
  }
  return Level::kNone;
}

Level level_letter(char c) {
  switch (c) {
    case 'I':
    case 'N':
      return Level::kInfo;
    case 'W':
      return Level::kWarning;
    case 'E':
      return Level::kError;
    case 'F':
    case 'C':
      return Level::kFatal;
    case 'D':
    case 'V':
    case 'T':
      return Level::kDebug;
    default:
      return Level::kNone;
  }
}

size_t HeaderText::skip_spaces(size_t pos) const {
  while (pos < line_.size()) {
    if (line_[pos] == ' ' || line_[pos] == '\t') {
      ++pos;
    } else if (line_[pos] == '\x1b' && peek(pos + 1) == '[') {
      size_t end = pos + 2;
      while (end < line_.size() && (digit(line_[end]) || line_[end] == ';')) ++end;
      if (!alpha(peek(end))) return pos;
      pos = end + 1;
    } else {
      return pos;
    }
  }
  return pos;
}

size_t HeaderText::skip_separators(size_t pos) const {
  pos = skip_spaces(pos);
  const char c = peek(pos);
  if (c != '-' && c != '|' && c != ':' && c != ',' && c != '>') return pos;
  size_t end = pos + 1;
  if ((c == '>' || c == '-') && peek(end) == c) ++end;
  if (c == '>' && end == pos + 1) return pos;
  if (end < line_.size() && line_[end] != ' ' && !(c == ':' && line_[end] == '[')) return pos;
  return skip_spaces(end);
}

size_t HeaderText::digits_at(size_t pos) const {
  size_t end = pos;
  while (end < line_.size() && digit(line_[end]) && end - pos < 20) ++end;
  return end - pos;
}

size_t HeaderText::word_end(size_t pos) const {
  const size_t stop = std::min(line_.size(), pos + kWordMax);
  while (pos < stop && kWordChars[static_cast<unsigned char>(line_[pos])]) ++pos;
  return pos;
}

size_t HeaderText::location_end(size_t pos, bool loose) const {
  const size_t stop = std::min(line_.size(), pos + kLocationMax);
  size_t colon = pos, dot = 0;
  while (colon < stop && kPathChars[static_cast<unsigned char>(line_[colon])]) {
    if (line_[colon] == '.') dot = colon;
    ++colon;
  }
  if (colon == pos || colon >= stop || digit(line_[pos])) return 0;
  const bool source = dot > pos && is_source_extension(line_.substr(dot + 1, colon - dot - 1));
  if (!source && !loose) return 0;
  if (line_[colon] == ',' && source) {  // "train.py, line 413, in record"
    constexpr std::string_view kLine = ", line ";
    if (line_.substr(colon, kLine.size()) != kLine) return 0;
    size_t end = colon + kLine.size();
    end += digits_at(end);
    if (line_.substr(end, 5) == ", in ") end = word_end(end + 5);
    return end;
  }
  if (line_[colon] != ':') return 0;
  const size_t digits = digits_at(colon + 1);
  size_t end = colon + 1 + digits;
  if (digits == 0) {  // "module:function:12"
    if (!loose) return 0;
    const size_t second = word_end(colon + 1);
    if (second == colon + 1 || peek(second) != ':' || digits_at(second + 1) == 0) return 0;
    return second + 1 + digits_at(second + 1);
  }
  if (peek(end) == ':' && (alpha(peek(end + 1)) || peek(end + 1) == '_' || peek(end + 1) == '<')) {
    ++end;
    while (end < stop && kPathChars[static_cast<unsigned char>(line_[end])]) ++end;
  }
  return end;
}

bool HeaderText::level_follows(size_t pos) const {
  pos = skip_separators(pos);
  if (peek(pos) == '[') ++pos;
  const size_t end = word_end(pos);
  const std::string_view word = line_.substr(pos, end - pos);
  return !word.empty() && (word[0] & 0x20) == 0 && word.size() > 1 && (word[1] & 0x20) == 0 &&
         level_word(word) != Level::kNone;
}

bool HeaderText::level_bracket_follows(size_t pos) const {
  for (int i = 0; i < 4; ++i) {
    pos = skip_spaces(pos);
    if (peek(pos) != '[') return false;
    const size_t end = word_end(pos + 1);
    if (end == pos + 1 || peek(end) != ']') return false;
    if (level_word(line_.substr(pos + 1, end - pos - 1)) != Level::kNone) return true;
    pos = end + 1;
  }
  return false;
}

size_t HeaderText::address_end(size_t pos) const {
  constexpr size_t kLongest = 39;  // eight groups of four
  const bool groups = peek(pos + 4) == ':';
  const size_t stop = std::min(line_.size(), pos + kLongest + 1);
  size_t end = pos;
  while (end < stop && (digit(line_[end]) || line_[end] == (groups ? ':' : '.') ||
                        (groups && (line_[end] | 0x20) >= 'a' && (line_[end] | 0x20) <= 'f')))
    ++end;
  if (groups && end > pos && line_[end - 1] == ':' && line_[end - 2] != ':') --end;
  const std::string_view text = line_.substr(pos, end - pos);
  return (groups ? is_ipv6(text) : is_ipv4(text)) ? end : 0;
}

size_t HeaderText::rank_end(size_t pos, uint32_t& rank) const {
  if (pos + 5 > line_.size()) return 0;
  const char* const p = line_.data() + pos;
  const bool capital = p[0] == 'R' && p[1] == 'A' && p[2] == 'N' && p[3] == 'K';
  if (!capital && !((p[0] | 0x20) == 'r' && p[1] == 'a' && p[2] == 'n' && p[3] == 'k')) return 0;
  size_t at = pos + 4;
  if (const char c = peek(at); c == ' ' || c == '=' || c == '_' || c == '-' || c == '#' || c == ':') ++at;
  const size_t digits = digits_at(at);
  if (digits == 0 || digits > 7) return 0;
  rank = 0;
  for (size_t i = 0; i < digits; ++i) rank = rank * 10 + static_cast<uint32_t>(line_[at + i] - '0');
  return at + digits;
}

}  // namespace culprit::logs
