#include "core/logs/header_fields.h"

namespace culprit::logs {

size_t HeaderFields::note_time(const Stamp& stamp) {
  if (!has_time) header.time_ns = stamp.time_ns;
  if (!has_time || outer) {
    zoned = stamp.zoned && !stamp.named_month;
    syslog = stamp.named_month || zoned;
  }
  has_time = true;
  place = column = false;
  return stamp.end;
}

void HeaderFields::note_level(Level level) {
  header.level = level;
  has_level = true;
  place = column = false;
}

void HeaderFields::note_host(std::string_view host) {
  if (header.host.empty()) header.host = host;
  place = true;
}

void HeaderFields::note_rank(uint32_t rank, bool task) {
  place = true;
  // The rank that the program reports overrides the task number of its launcher.
  if (header.rank != kNoRank && !(header.task && !task)) return;
  header.rank = rank;
  header.task = task;
}

}  // namespace culprit::logs
