// Reads pieces of a line's text at an offset: words, digits, levels, source locations, addresses, ranks. It
// recognises text, but does not know which fields of a header precede it. Internal to header*.cc. A view of
// the line, on the stack; pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/logs/header.h"

namespace culprit::logs {

// The level of a word: "INFO", "Warning", "err". kNone for other words.
Level level_word(std::string_view word);
// The level of a letter, in formats with letters: I, W, E, F, D, V, C.
Level level_letter(char c);

class HeaderText {
 public:
  explicit HeaderText(std::string_view line) : line_(line) {}

  // The byte at `pos`; '\0' after the end.
  char peek(size_t pos) const { return pos < line_.size() ? line_[pos] : '\0'; }
  // The offset after blanks and terminal colours.
  size_t skip_spaces(size_t pos) const;
  // The offset after blanks, and one separator between fields: " - ", " | ", ": ", ", ", " >> ", " -- ".
  size_t skip_separators(size_t pos) const;
  // Number of digits at `pos`.
  size_t digits_at(size_t pos) const;
  size_t word_end(size_t pos) const;
  // The offset after "engine.py:33:forward" or "engine.py:33"; 0 if there is none. `loose` accepts
  // "module:33".
  size_t location_end(size_t pos, bool loose) const;
  // Whether a level is at `pos`, after at most one separator, or in brackets.
  bool level_follows(size_t pos) const;
  // Whether bracketed names precede a bracketed level: "[ascend] [drv_pcie] [INFO]".
  bool level_bracket_follows(size_t pos) const;
  // The offset after an IPv4 or IPv6 address at `pos`; 0 if there is none.
  size_t address_end(size_t pos) const;
  // The offset after "rank3", "Rank 3" or "rank=3" at `pos`; sets `rank` to the number.
  size_t rank_end(size_t pos, uint32_t& rank) const;

 private:
  std::string_view line_;
};

}  // namespace culprit::logs
