// Fields that begin with a digit, and headers of kernels and supercomputers that do.
#include <algorithm>

#include "base/ascii.h"
#include "core/logs/header_scan.h"
#include "core/logs/host_name.h"

namespace culprit::logs {
namespace {

// srun pads its labels to the width of the largest task number: at most five digits. Lists that programs
// print are indented further.
constexpr size_t kTaskWidthMax = 5;

// The eight levels of syslog and the kernel.
Level kernel_level(uint64_t priority) {
  switch (priority & 7) {
    case 0:
    case 1:
    case 2:
      return Level::kFatal;
    case 3:
      return Level::kError;
    case 4:
      return Level::kWarning;
    case 7:
      return Level::kDebug;
    default:
      return Level::kInfo;
  }
}

// A unit after a number.
bool is_unit(std::string_view word) {
  constexpr std::string_view kUnits[] = {
      "bytes",   "byte",   "B",          "KB",       "MB",    "GB",   "KiB",    "MiB",    "GiB",   "tokens",
      "samples", "params", "parameters", "elements", "steps", "rows", "lines",  "files",  "items", "ns",
      "us",      "ms",     "s",          "FLOPs",    "flops", "bits", "values", "entries"};
  return std::find(std::begin(kUnits), std::end(kUnits), word) != std::end(kUnits);
}

}  // namespace

size_t HeaderScan::take_number(size_t pos) {
  const size_t digits = text_.digits_at(pos);
  const char after = text_.peek(pos + digits);
  if (digits <= 6 && after == ':' && pos - lead_ < 40 && !fields_.has_time && !fields_.has_level)
    if (const size_t end = take_task(pos, digits)) return end;
  if (digits == 8 || digits <= 6)
    if (const Stamp stamp = times_.at(line_, pos); stamp.end != 0) return fields_.note_time(stamp);
  if (digits >= 10)
    if (const size_t end = take_epoch(pos)) return end;
  if (fields_.has_time || fields_.has_level) return take_pid(pos, digits);
  return pos == lead_ && after == ',' ? take_kmsg(pos) : 0;
}

// "10.0.3.7: message", "fd00::7 | message", and the host between the time and tag of syslog.
size_t HeaderScan::take_address(size_t pos) {
  if (!fields_.header.host.empty() || fields_.has_level || fields_.has_location) return 0;
  const size_t end = text_.address_end(pos);
  if (end == 0) return 0;
  const std::string_view host = line_.substr(pos, end - pos);
  const size_t next = text_.skip_spaces(end);
  if (fields_.has_time) {
    const size_t tag = next > end ? take_syslog_tag(next) : 0;
    if (tag == 0) return 0;
    fields_.note_host(host);
    fields_.place = false;
    return tag;
  }
  const bool colon = text_.peek(end) == ':' && (text_.peek(end + 1) == ' ' || end + 1 == line_.size());
  const bool bar = text_.peek(next) == '|' && text_.peek(next + 1) == ' ';
  if ((pos != lead_ && !fields_.place) || (!colon && !bar)) return 0;
  fields_.note_host(host);
  return colon ? end + 1 : next + 1;
}

// "131: " of srun -l.
size_t HeaderScan::take_task(size_t pos, size_t digits) {
  const size_t end = pos + digits + 1;
  const char next = text_.peek(end);
  if (end < line_.size() && next != ' ' && next != '[') return 0;
  if (fields_.header.rank != kNoRank) return 0;
  if (pos == lead_ && pos + digits > kTaskWidthMax && pos > 0) return 0;
  fields_.note_rank(static_cast<uint32_t>(digits_value(line_, pos, digits)), true);
  return end;
}

// A process or thread: a number before another header field.
size_t HeaderScan::take_pid(size_t pos, size_t digits) {
  if (digits > 19) return 0;
  size_t end = pos + digits;
  if (text_.peek(end) == ':' && digit(text_.peek(end + 1))) {  // "117717:117718"
    end += 1 + text_.digits_at(end + 1);
    if (text_.peek(end) == ' ' && text_.peek(end + 1) == '[' &&
        text_.digits_at(end + 2) > 0) {  // and a device: "4112959:4113326 [23]"
      const size_t device = text_.digits_at(end + 2);
      if (text_.peek(end + 2 + device) == ']' && device <= 3) {
        if (fields_.header.local == kNoRank)
          fields_.header.local = static_cast<uint32_t>(digits_value(line_, end + 2, device));
        return end + 3 + device;
      }
    }
    return text_.level_follows(end) ? end : 0;
  }
  // "[engine.cc:1263]163618 ReportExceptProc:"
  if (fields_.has_location && pos > 0 && line_[pos - 1] == ']' && text_.peek(end) == ' ') return end;
  if (text_.peek(end) != ' ') return 0;
  const size_t next = text_.skip_spaces(end);
  if (text_.level_follows(next)) return end;
  if (text_.location_end(next, false) != 0) return end;
  if (level_letter(text_.peek(next)) != Level::kNone && text_.peek(next + 1) == ' ' && !fields_.has_level)
    return end;
  if (const size_t second = text_.digits_at(next); second > 0 && text_.peek(next + second) == ' ') {
    const size_t third = text_.skip_spaces(next + second);
    const bool letter = level_letter(text_.peek(third)) != Level::kNone && text_.peek(third + 1) == ' ';
    if ((letter && !fields_.has_level) || text_.level_follows(third)) return end;
  }
  if (fields_.has_level && line_.substr(next, 5) == "--- [")
    return next + 3;  // Spring's "INFO 12345 --- [main] "
  // Go's "2024/01/10 03:30:38.643290 17      pkg/file.go:190": aligned columns
  return next > end + 3 && text_.location_end(next, true) != 0 ? end : 0;
}

size_t HeaderScan::take_epoch(size_t pos) {
  if (fields_.has_time || (pos != lead_ && !fields_.place)) return 0;
  const Stamp stamp = times_.epoch_at(line_, pos);
  if (stamp.end == 0) return 0;
  const char after = text_.peek(stamp.end);
  if (after != ' ' && after != ',' && after != '\t' && after != ':') return 0;
  const size_t next = text_.skip_spaces(stamp.end + 1);
  const size_t end = text_.word_end(next);
  if (end > next && is_unit(line_.substr(next, end - next))) return 0;
  if (after == ':' && text_.peek(stamp.end + 1) != ' ') return 0;
  return fields_.note_time(stamp);
}

// "6,3973,227986636,-;message": priority, sequence number and microseconds since boot in /dev/kmsg.
size_t HeaderScan::take_kmsg(size_t pos) {
  const size_t priority = text_.digits_at(pos), second = pos + priority + 1;
  const size_t sequence = text_.digits_at(second), third = second + sequence + 1;
  const size_t micros = text_.digits_at(third);
  if (priority > 4 || sequence == 0 || micros == 0 || micros > 15 || text_.peek(second + sequence) != ',' ||
      text_.peek(third + micros) != ',')
    return 0;
  size_t end = third + micros + 1;
  while (end < line_.size() && line_[end] != ';' && end < third + micros + 40) ++end;
  if (text_.peek(end) != ';') return 0;
  fields_.note_level(kernel_level(digits_value(line_, pos, priority)));
  fields_.header.time_ns = static_cast<TimeNs>(digits_value(line_, third, micros)) * kNsPerUs;
  fields_.header.kernel = fields_.header.kernel_time = fields_.has_time = true;
  return end + 1;
}

// "<6>" of the kernel, "<34>1 " of RFC 5424.
size_t HeaderScan::take_priority(size_t pos) {
  const size_t digits = text_.digits_at(pos + 1);
  if (pos != lead_ || digits == 0 || digits > 3 || text_.peek(pos + 1 + digits) != '>') return 0;
  fields_.note_level(kernel_level(digits_value(line_, pos + 1, digits)));
  size_t end = pos + digits + 2;
  if (digit(text_.peek(end)) && text_.peek(end + 1) == ' ' && text_.digits_at(end + 2) == 4) end += 2;
  return end;
}

// "- 1117838570 2005.06.03 R02-M1-N0-C:J12-U11 ": class of an alert, epoch seconds, date and node. They begin
// a RAS record ("2005-06-03-15.42.50.675872 NODE RAS KERNEL INFO message") or a line of syslog.
size_t HeaderScan::take_supercomputer(size_t pos) {
  if (pos != 0) return 0;
  size_t at = line_[0] == '-' ? 1 : text_.word_end(0);
  if (text_.peek(at) != ' ' || at > 16) return 0;
  const Stamp epoch = text_.digits_at(at + 1) == 10 ? times_.epoch_at(line_, at + 1) : Stamp{};
  if (epoch.end == 0 || text_.peek(epoch.end) != ' ' || text_.digits_at(epoch.end + 1) != 4 ||
      text_.peek(epoch.end + 5) != '.')
    return 0;
  const size_t node_at = epoch.end + 12;
  if (node_at >= line_.size() || line_[node_at - 1] != ' ') return 0;
  const size_t node_end = line_.find(' ', node_at);
  if (node_end == std::string_view::npos || node_end == node_at || node_end > node_at + 64) return 0;
  fields_.note_time(epoch);
  fields_.note_host(line_.substr(node_at, node_end - node_at));
  fields_.place = false;
  fields_.outer = true;
  const Stamp local = times_.at(line_, node_end + 1);
  if (local.end == 0 || local.named_month || text_.peek(local.end) != ' ') return node_end;
  // the node again, two words of capitals and the level
  at = line_.find(' ', local.end + 1);
  for (int i = 0; i < 2 && at != std::string_view::npos; ++i) {
    const size_t end = text_.word_end(at + 1);
    if (end == at + 1 || !alpha(line_[at + 1])) return local.end;
    at = end;
  }
  if (at == std::string_view::npos || text_.peek(at) != ' ') return local.end;
  const size_t end = text_.word_end(at + 1);
  const Level level = level_word(line_.substr(at + 1, end - at - 1));
  if (level == Level::kNone) return local.end;
  fields_.note_level(level);
  fields_.ended = true;
  return end;
}

}  // namespace culprit::logs
