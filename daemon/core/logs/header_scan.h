// The scan of one line by HeaderParser: recognised fields from the beginning, until the first unknown one.
// Internal to header*.cc. One object per line, on the stack; views point into the line.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/logs/header.h"
#include "core/logs/timestamp.h"

namespace culprit::logs {

// The level of a word: "INFO", "Warning", "err". kNone for other words.
Level level_word(std::string_view word);
// The level of a letter, in formats with letters: I, W, E, F, D, V, C.
Level level_letter(char c);

class HeaderScan {
 public:
  HeaderScan(std::string_view line, TimestampReader& times, HostCache& hosts)
      : line_(line), times_(times), hosts_(hosts) {}

  Header run();

 private:
  // Each take_* function reads one field at `pos`, notes its content and returns the offset after it; 0: no
  // such field.
  size_t take_field(size_t pos);
  size_t take_prefix(size_t pos);

  // header_brackets.cc
  size_t take_bracket(size_t pos);
  size_t take_bracket_number(size_t pos, size_t close);
  size_t take_bracket_word(size_t pos, size_t close);
  size_t take_bracket_place(size_t pos, size_t close);
  size_t take_bracket_address(size_t pos, size_t close);
  size_t take_bracket_words(size_t pos, size_t close);
  size_t take_bracket_name(size_t pos, size_t close);
  size_t take_paren(size_t pos);
  size_t take_paren_words(size_t pos);
  bool level_bracket_follows(size_t pos) const;

  // header_numbers.cc
  size_t take_number(size_t pos);
  size_t take_address(size_t pos);
  size_t take_task(size_t pos, size_t digits);
  size_t take_pid(size_t pos, size_t digits);
  size_t take_epoch(size_t pos);
  size_t take_kmsg(size_t pos);
  size_t take_priority(size_t pos);
  size_t take_supercomputer(size_t pos);

  // header_words.cc
  size_t take_word(size_t pos);
  size_t take_word_colon(size_t pos, size_t end);
  size_t take_word_space(size_t pos, size_t end);
  size_t take_behind_time(size_t pos, size_t end);
  size_t take_level_word(size_t pos, size_t end);
  size_t take_glog(size_t pos);
  size_t take_nccl(size_t pos, size_t end);
  size_t take_host(size_t pos, size_t end);
  size_t take_syslog_host(size_t pos, size_t end);
  size_t take_syslog_tag(size_t pos);
  size_t take_logger(size_t pos, size_t end);
  size_t take_facility(size_t pos, size_t end);
  size_t take_logfmt(size_t pos);
  size_t take_module(size_t pos, size_t end);
  size_t take_column(size_t pos, size_t end);

  // header_text.cc
  char peek(size_t pos) const { return pos < line_.size() ? line_[pos] : '\0'; }
  size_t skip_spaces(size_t pos) const;
  size_t skip_separators(size_t pos) const;
  size_t digits_at(size_t pos) const;
  size_t word_end(size_t pos) const;
  // The offset after "engine.py:33:forward" or "engine.py:33"; 0 if there is none. `loose` accepts
  // "module:33".
  size_t location_end(size_t pos, bool loose) const;
  bool level_follows(size_t pos) const;
  // The offset after an IPv4 or IPv6 address at `pos`; 0 if there is none.
  size_t address_end(size_t pos) const;
  // The offset after "rank3", "Rank 3" or "rank=3" at `pos`; sets `rank` to the number.
  size_t rank_end(size_t pos, uint32_t& rank) const;

  size_t note_time(const Stamp& stamp);
  void note_level(Level level);
  void note_host(std::string_view host);
  void note_rank(uint32_t rank, bool task);

  std::string_view line_;
  TimestampReader& times_;
  HostCache& hosts_;
  Header header_;
  bool time_ = false;  // a field had the time, even if it could not be resolved
  bool level_ = false;
  bool location_ = false;
  bool logger_ = false;
  bool tag_ = false;     // the logger is a program's tag in syslog
  bool zoned_ = false;   // the last field was a time with a zone: journald's, if a host and a tag follow
  bool syslog_ = false;  // the last field was a time in syslog's format
  bool place_ = false;   // the last field was a place: the message keeps its indentation
  bool column_ = false;  // the last field was only a level word: columns may follow
  bool outer_ = false;   // the time is from a collector's envelope; the line's own header follows
  bool ended_ = false;   // the last field always ends a header
  size_t lead_ = 0;      // offset of the first field
};

}  // namespace culprit::logs
