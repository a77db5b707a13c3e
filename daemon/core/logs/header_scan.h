// The scan of one line by HeaderParser: recognised fields from the beginning, until the first unknown one.
// Internal to header*.cc. One object per line, on the stack; views point into the line.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/logs/header.h"
#include "core/logs/header_fields.h"
#include "core/logs/header_text.h"
#include "core/logs/timestamp.h"

namespace culprit::logs {

class HeaderScan {
 public:
  HeaderScan(std::string_view line, TimestampReader& times, HostCache& hosts)
      : line_(line), text_(line), times_(times), hosts_(hosts) {}

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

  std::string_view line_;
  HeaderText text_;
  TimestampReader& times_;
  HostCache& hosts_;
  HeaderFields fields_;
  size_t lead_ = 0;  // offset of the first field
};

}  // namespace culprit::logs
