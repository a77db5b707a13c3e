#include "core/logs/header.h"

#include <algorithm>
#include <cstring>

#include "base/ascii.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/logs/header_scan.h"
#include "core/logs/host_name.h"

namespace culprit::logs {
namespace {

// Fields of one header: the longest known has nine.
constexpr int kFieldsMax = 16;
// A file name with the last folder of its path and a date.
constexpr size_t kPrefixMax = 128;

uint64_t name_hash(std::string_view name) {
  uint64_t hash = 0x9e3779b97f4a7c15ull ^ name.size();
  for (size_t at = 0; at < name.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, name.data() + at, std::min<size_t>(8, name.size() - at));
    hash = mix64(hash, word);
  }
  return hash;
}

}  // namespace

bool HostCache::is_host(std::string_view name) {
  if (name.size() < 2) return false;
  const uint64_t hash = name_hash(name) | 2;
  uint64_t& slot = slots_[(hash >> 32) % kSlots];
  if ((slot | 1) == (hash | 1)) return slot & 1;
  const bool host = is_host_name(name);
  slot = (hash & ~uint64_t{1}) | (host ? 1 : 0);
  return host;
}

size_t HeaderScan::take_field(size_t pos) {
  const char c = line_[pos];
  if (c == '[') return take_bracket(pos);
  if (digit(c) || (c | 0x20) == 'f')
    if (const size_t end = take_address(pos)) return end;
  if (digit(c)) return take_number(pos);
  if (alpha(c) || c == '_') return take_word(pos);
  if (c == '(') return take_paren(pos);
  if (c == '<') return take_priority(pos);
  if (c == '-') return take_supercomputer(pos);
  if (c == '{' && fields_.has_time && !fields_.has_location) {  // "{taskinstance.py:123} INFO - "
    const size_t end = text_.location_end(pos + 1, false);
    if (end == 0 || text_.peek(end) != '}' || !text_.level_follows(end + 1)) return 0;
    fields_.has_location = true;
    return end + 1;
  }
  if (c == '|' && fields_.has_time &&
      !fields_.has_level) {  // "20171223-22:15:29:606|Step_LSC|30002312|message"
    const size_t name = text_.word_end(pos + 1);
    if (name == pos + 1 || text_.peek(name) != '|') return 0;
    const size_t digits = text_.digits_at(name + 1);
    fields_.ended = true;
    return digits > 0 && text_.peek(name + 1 + digits) == '|' ? name + 2 + digits : name + 1;
  }
  return 0;
}

// "worker.log 2024-05-10 11:16:14.508 25746 INFO ": the file or container name that a collector, grep or tail
// writes before a whole header.
size_t HeaderScan::take_prefix(size_t pos) {
  const size_t end = line_.substr(0, pos + kPrefixMax).find(' ', pos);
  if (end == std::string_view::npos || !digit(text_.peek(end + 1))) return 0;
  const Stamp stamp = times_.at(line_, end + 1);
  if (stamp.end == 0) return 0;
  const size_t next = text_.skip_spaces(stamp.end), digits = text_.digits_at(next);
  if (!text_.level_follows(stamp.end) && (digits == 0 || !text_.level_follows(next + digits))) return 0;
  if (const std::string_view name = line_.substr(pos, end - pos); hosts_.is_host(name))
    fields_.note_host(name);
  return fields_.note_time(stamp);
}

Header HeaderScan::run() {
  size_t pos = lead_ = text_.skip_spaces(0);
  for (int fields = 0; fields < kFieldsMax && pos < line_.size() && pos < kTimeWindow; ++fields) {
    const bool after_syslog = fields_.syslog;
    size_t end = take_field(pos);
    if (end == 0 && fields == 0) end = take_prefix(pos);
    if (end == 0) break;
    if (after_syslog) fields_.syslog = false;
    size_t next = end;
    if (!fields_.place)
      next = text_.skip_separators(end);
    else if (text_.peek(end) == '\x1b')
      next = text_.skip_spaces(end);
    else if (text_.peek(end) == ' ')
      ++next;
    fields_.header.message = static_cast<uint32_t>(next);
    if (fields_.ended) break;
    pos = fields_.place ? text_.skip_spaces(next) : next;
  }
  if (!fields_.has_time) {
    const Stamp stamp = times_.find(line_, std::min<size_t>(fields_.header.message, line_.size()));
    if (stamp.end != 0) fields_.header.time_ns = stamp.time_ns;
  }
  fields_.header.message = static_cast<uint32_t>(std::min<size_t>(fields_.header.message, line_.size()));
  return fields_.header;
}

HeaderParser::HeaderParser(const HeaderOptions& options) : times_(options.zone, options.modified_ns) {}

Header HeaderParser::parse(std::string_view line) { return HeaderScan(line, times_, hosts_).run(); }

TimeNs HeaderParser::time_of(std::string_view text) {
  const Stamp date = times_.at(text, 0);
  return date.end != 0 ? date.time_ns : times_.epoch_at(text, 0).time_ns;
}

std::string begins_after(std::string_view line) {
  constexpr size_t kShown = 100;
  const std::string_view header = line.substr(0, HeaderParser({}).parse(line).message);
  if (trim(header).empty()) return "";
  // The end of a long header is more informative than its beginning, the time.
  const bool cut = header.size() > kShown;
  return "the message begins after '" + std::string(cut ? "…" : "") +
         to_utf8(cut ? header.substr(header.size() - kShown) : header) + "'";
}

}  // namespace culprit::logs
