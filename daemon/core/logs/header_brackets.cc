// Fields in brackets and parentheses.
#include <algorithm>
#include <cstring>

#include "base/ascii.h"
#include "base/limits.h"
#include "core/logs/header_scan.h"
#include "core/logs/host_name.h"

namespace culprit::logs {
namespace {

// Longer brackets hold text, not a field.
constexpr size_t kBracketMax = 200;
constexpr size_t kParenMax = 100;
// "[node-17:0]" is a host and its device, "[nid006549:31808]" a host and a process. No host has more devices.

bool is_name(std::string_view text) {
  if (text.empty() || !(alpha(text[0]) || text[0] == '_')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return digit(c) || alpha(c) || c == '_' || c == '.' || c == '-' || c == '$';
  });
}

}  // namespace

size_t HeaderScan::take_bracket(size_t pos) {
  const size_t room = std::min(line_.size() - pos, kBracketMax);
  const auto* found = static_cast<const char*>(std::memchr(line_.data() + pos, ']', room));
  if (!found) return 0;
  const auto close = static_cast<size_t>(found - line_.data());
  if (close == pos + 1) return 0;
  const char first = line_[pos + 1];
  if (digit(first) || (first | 0x20) == 'f')
    if (const size_t end = take_bracket_address(pos, close)) return end;
  const size_t end =
      digit(first) || first == ' ' ? take_bracket_number(pos, close) : take_bracket_word(pos, close);
  if (end != 0) fields_.syslog = false;  // the time of syslog itself has no brackets
  return end;
}

size_t HeaderScan::take_bracket_number(size_t pos, size_t close) {
  const size_t begin = text_.skip_spaces(pos + 1);
  const size_t digits = text_.digits_at(begin);
  // "[12345.678901]": seconds since boot
  if (digits > 0 && begin + digits + 7 == close && line_[begin + digits] == '.' &&
      text_.digits_at(begin + digits + 1) == 6) {
    if (fields_.has_time) return close + 1;
    if (const Stamp epoch = times_.epoch_at(line_, begin); epoch.end == close) {
      fields_.note_time(epoch);
      return close + 1;
    }
    if (digits > 9) return 0;
    fields_.header.kernel = fields_.header.kernel_time = fields_.has_time = true;
    fields_.header.time_ns = digits_value(line_.substr(begin, digits)) * kNsPerSecond +
                             digits_value(line_.substr(begin + digits + 1, 6)) * kNsPerUs;
    return close + 1;
  }
  if (begin != pos + 1) return 0;
  if (begin + digits == close) {
    if (const Stamp epoch = times_.epoch_at(line_, begin); !fields_.has_time && epoch.end == close) {
      fields_.note_time(epoch);
      return close + 1;
    }
    return (fields_.has_time || fields_.has_level) && digits <= 10 ? close + 1 : 0;  // a process or thread
  }
  if (const Stamp stamp = times_.at(line_, begin); stamp.end != 0) {
    if (stamp.end == close) {
      fields_.note_time(stamp);
      return close + 1;
    }
    return take_bracket_words(pos, close);
  }
  if (const Stamp epoch = times_.epoch_at(line_, begin); !fields_.has_time && epoch.end == close) {
    fields_.note_time(epoch);
    return close + 1;
  }
  // "[1,131]<stdout>:": mpirun's job and rank
  if (line_[begin + digits] == ',' &&
      all_digits(line_.substr(begin + digits + 1, close - begin - digits - 1))) {
    const std::string_view after = line_.substr(close + 1, 9);
    if (after.substr(0, 8) != "<stdout>" && after.substr(0, 8) != "<stderr>" &&
        after.substr(0, 8) != "<stddia>")
      return 0;
    fields_.note_rank(digits_value(line_.substr(begin + digits + 1, close - begin - digits - 1)), false);
    return close + 9 + (text_.peek(close + 9) == ':');
  }
  return 0;
}

size_t HeaderScan::take_bracket_word(size_t pos, size_t close) {
  const std::string_view content = line_.substr(pos + 1, close - pos - 1);
  if (!fields_.has_level) {
    if (const Level level = level_word(content); level != Level::kNone) {
      fields_.note_level(level);
      return close + 1;
    }
  }
  if (fields_.has_level && !fields_.has_location &&
      text_.location_end(pos + 1, false) == close) {  // the usual order
    fields_.has_location = true;
    fields_.place = fields_.column = false;
    return close + 1;
  }
  if (const size_t end = take_bracket_place(pos, close)) return end;
  if (!fields_.has_location || !fields_.has_time)
    if (const size_t end = take_bracket_words(pos, close)) return end;
  return take_bracket_name(pos, close);
}

// "[rank131]", "[default7]:", "[node-17:0]", "[node-17]", "[pod/name/container]".
size_t HeaderScan::take_bracket_place(size_t pos, size_t close) {
  const std::string_view content = line_.substr(pos + 1, close - pos - 1);
  const bool colon = text_.peek(close + 1) == ':';
  const size_t behind = close + 1 + colon;
  uint32_t rank = 0;
  if (const size_t end = text_.rank_end(pos + 1, rank); end == close) {
    fields_.note_rank(rank, false);
    return behind;
  }
  if (content.starts_with("pod/")) {
    const std::string_view name = content.substr(4, content.find('/', 4) - 4);
    if (name.empty()) return 0;
    fields_.note_host(name);
    return behind;
  }
  if (const size_t mark = content.rfind(':'); mark != std::string_view::npos) {
    const std::string_view name = content.substr(0, mark), digits = content.substr(mark + 1);
    if (!all_digits(digits) || !hosts_.is_host(name)) return 0;
    fields_.note_host(name);
    if (digits.size() < 4 && digits_value(digits) < limits::kDevicesOfHost)
      fields_.header.local = digits_value(digits);
    return behind;
  }
  if (!digit(content.back()) && !content.starts_with("host")) return 0;
  size_t letters = 0;
  while (letters < content.size() && alpha(content[letters])) ++letters;
  const std::string_view digits = content.substr(letters);
  // torchrun's tee prefix: the name of the role and the local rank
  if (colon && letters >= 3 && digits.size() <= 3 && all_digits(digits) &&
      host_form(content) != HostForm::kMachine) {
    if (fields_.header.local == kNoRank) fields_.header.local = digits_value(digits);
    fields_.place = true;
    return behind;
  }
  if (!hosts_.is_host(content)) return 0;
  fields_.note_host(content);
  return behind;
}

// "[10.0.3.7:0]", "[fd00::7]": the address of a host, and a device.
size_t HeaderScan::take_bracket_address(size_t pos, size_t close) {
  const std::string_view content = line_.substr(pos + 1, close - pos - 1);
  if (content.find_first_of(".:") == std::string_view::npos) return 0;
  const auto address = [](std::string_view text) { return is_ipv4(text) || is_ipv6(text); };
  const size_t mark = content.rfind(':');
  const std::string_view digits = mark == std::string_view::npos ? "" : content.substr(mark + 1);
  const bool device = all_digits(digits) && address(content.substr(0, mark));
  if (!device && !address(content)) return 0;
  fields_.note_host(device ? content.substr(0, mark) : content);
  if (device && digits.size() < 4 && digits_value(digits) < limits::kDevicesOfHost)
    fields_.header.local = digits_value(digits);
  return close + 1 + (text_.peek(close + 1) == ':');
}

// Several fields in one bracket: "[NeMo W 2024-05-10 11:16:14 megatron_base_model:1147]",
// "[INFO|trainer.py:1143]", "[2026-03-06 12:30:07,123 E 4711 4711]", "[W1121 02:12:09.123
// ProcessGroupNCCL.cpp:1250]", "[engine.py:33:forward]".
size_t HeaderScan::take_bracket_words(size_t pos, size_t close) {
  Level level = Level::kNone;
  Stamp stamp;
  bool location = false;
  size_t at = pos + 1;
  for (int words = 0; at < close; ++words) {
    if (words == 8) return 0;
    if (line_[at] == ' ' || line_[at] == '|' || line_[at] == ',') {
      ++at;
      continue;
    }
    size_t end = text_.word_end(at);
    if (level == Level::kNone && end < close && level_letter(line_[at]) != Level::kNone) {
      if (end == at + 1 && line_[end] == ' ') {
        level = level_letter(line_[at]);
        at = end;
        continue;
      }
      const size_t digits = stamp.end == 0 ? text_.digits_at(at + 1) : 0;
      if ((digits == 3 || digits == 4) && at + 1 + digits == end && line_[end] == ' ') {
        const Level letter = level_letter(line_[at]);
        char date[32];  // "1121 02:12:09.123456" as "11-21 02:12:09.123456"
        const size_t length = std::min<size_t>(close - end, 24);
        const size_t month = digits - 2;
        date[0] = month == 1 ? '0' : line_[at + 1];
        date[1] = line_[at + month];
        date[2] = '-';
        date[3] = line_[at + 1 + month];
        date[4] = line_[at + 2 + month];
        std::memcpy(date + 5, line_.data() + end, length);
        stamp = times_.at(std::string_view(date, 5 + length), 0);
        if (stamp.end == 0) return 0;
        level = letter;
        at = end + stamp.end - 5;
        continue;
      }
    }
    if (stamp.end == 0 && (digit(line_[at]) || (words < 3 && line_[end] == ' ' && end == at + 3))) {
      stamp = times_.at(line_, at);
      if (stamp.end > close) return 0;
      if (stamp.end != 0) {
        at = stamp.end;
        continue;
      }
    }
    if (!location) {
      const size_t behind = text_.location_end(at, level != Level::kNone || stamp.end != 0);
      if (behind != 0 && behind <= close && (behind == close || line_[behind] == ' ')) {
        location = true;
        at = behind;
        continue;
      }
    }
    const std::string_view word = line_.substr(at, end - at);
    if (level == Level::kNone && level_word(word) != Level::kNone) {
      level = level_word(word);
    } else if (!(words == 0 && line_[end] == ' ' && is_name(word)) && !(stamp.end != 0 && all_digits(word))) {
      return 0;
    }
    at = end;
  }
  const bool named = level != Level::kNone || location;  // a first word that is no field names a logger
  if (stamp.end == 0 && !named) return 0;
  if (stamp.end == 0 && level != Level::kNone && !location) return 0;
  if (level != Level::kNone && !fields_.has_level) fields_.note_level(level);
  if (stamp.end != 0) fields_.note_time(stamp);
  fields_.has_location |= location;
  fields_.place = false;
  return close + 1;
}

// Names of threads, loggers and components, if a level or a logger shows that the header continues.
size_t HeaderScan::take_bracket_name(size_t pos, size_t close) {
  const std::string_view content = line_.substr(pos + 1, close - pos - 1);
  if (!fields_.has_time && !fields_.has_level) return 0;
  // "[tid:4717]", "[pid 12]"
  if (content.size() > 4 && (content.starts_with("tid") || content.starts_with("pid") ||
                             content.starts_with("PID") || content.starts_with("TID"))) {
    const size_t at = content.find_first_of("0123456789");
    if (at != std::string_view::npos && at <= 5 && all_digits(content.substr(at))) return close + 1;
  }
  if (!fields_.has_time) return 0;
  if (content.starts_with("req-") || (content == "-" && fields_.has_logger))
    return close + 1;  // oslo.log's request
  if (fields_.has_level && !fields_.has_location) {
    // "[QuorumPeer[myid=1]/0:0:2181:Election@774] - ": a thread and a line, with nested brackets
    size_t end = close;
    const size_t stop = std::min(line_.size(), pos + kBracketMax);
    for (size_t depth = 0, at = pos; at < stop; ++at) {
      depth += line_[at] == '[';
      if (line_[at] == ']' && --depth == 0) {
        end = at;
        break;
      }
    }
    if (line_.substr(end + 1, 3) == " - ") {
      fields_.has_location = true;
      return end + 4;
    }
    // "[main] org.apache.Name: ", "[IPC Server handler 7 on 62270] o.a.Name  : ": a thread of any name
    return text_.peek(close + 1) == ' ' ? take_logger(close + 2, text_.word_end(close + 2)) : 0;
  }
  // "[main] INFO  org.apache.Name - ": logback's thread
  if (!fields_.has_level && text_.peek(close + 1) == ' ' && text_.level_follows(close + 1)) return close + 1;
  if (!fields_.has_level && is_name(content) && text_.level_bracket_follows(close + 1)) {
    fields_.has_logger = true;
    return close + 1;
  }
  return 0;
}

// "(WorkerDict pid=7435, ip=172.16.22.183)", "(tid:1382)", "(PID:53741, Device:0, RankID:-1)".
size_t HeaderScan::take_paren(size_t pos) {
  const Header before = fields_.header;
  const size_t end = take_paren_words(pos);
  if (end == 0) fields_.header = before;
  return end;
}

size_t HeaderScan::take_paren_words(size_t pos) {
  const size_t room = std::min(line_.size() - pos, kParenMax);
  const auto* found = static_cast<const char*>(std::memchr(line_.data() + pos, ')', room));
  if (!found) return 0;
  const auto close = static_cast<size_t>(found - line_.data());
  bool process = false;
  for (size_t at = pos + 1; at < close;) {
    size_t end = at;
    while (end < close && line_[end] != ',' && line_[end] != ' ') ++end;
    const std::string_view part = line_.substr(at, end - at);
    const size_t mark = part.find_first_of("=:");
    if (mark == std::string_view::npos) {
      if (at != pos + 1 || !is_name(part)) return 0;
    } else {
      const std::string_view key = part.substr(0, mark), value = part.substr(mark + 1);
      if (key == "pid" || key == "tid" || key == "PID") {
        if (!all_digits(value)) return 0;
        process = true;
      } else if (key == "ip") {
        if (value.empty()) return 0;
        fields_.note_host(value);
        process = true;
      } else if (key == "Device" || key == "RankID" || key == "rank" || key == "local_rank") {
        if (all_digits(value) && value.size() < 7) {
          if (key == "RankID" || key == "rank")
            fields_.note_rank(digits_value(value), false);
          else
            fields_.header.local = digits_value(value);
        }
      } else {
        return 0;
      }
    }
    at = end;
    while (at < close && (line_[at] == ',' || line_[at] == ' ')) ++at;
  }
  if (!process) return 0;
  fields_.place = !fields_.has_time;
  return close + 1;
}

}  // namespace culprit::logs
