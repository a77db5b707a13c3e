// The fields of a line's header that HeaderScan recognised so far: their content, and the state that decides
// which field may follow. Internal to header*.cc. One object per line, on the stack; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/logs/header.h"
#include "core/logs/timestamp.h"

namespace culprit::logs {

struct HeaderFields {
  Header header;
  bool has_time = false;  // a field had the time, even if it could not be resolved
  bool has_level = false;
  bool has_location = false;
  bool has_logger = false;
  bool has_tag = false;  // the logger is a program's tag in syslog
  bool zoned = false;    // the last field was a time with a zone: journald's, if a host and a tag follow
  bool syslog = false;   // the last field was a time in syslog's format
  bool place = false;    // the last field was a place: the message keeps its indentation
  bool column = false;   // the last field was only a level word: columns may follow
  bool outer = false;    // the time is from a collector's envelope; the line's own header follows
  bool ended = false;    // the last field always ends a header

  // Returns the offset after the time. The first time of a line counts.
  size_t note_time(const Stamp& stamp);
  void note_level(Level level);
  // The first host of a line counts.
  void note_host(std::string_view host);
  // `task`: the number is a launcher's task number (Header::task).
  void note_rank(uint32_t rank, bool task);
};

}  // namespace culprit::logs
