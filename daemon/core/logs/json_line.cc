#include "core/logs/json_line.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/logs/header_text.h"

namespace culprit::logs {
namespace {

constexpr size_t kFields = 64;  // of an object; later ones are not read

// The end of the string whose first byte after the quote is at `at`: its closing quote.
size_t string_end(std::string_view line, size_t at) {
  for (; at < line.size(); ++at) {
    if (line[at] == '\\')
      ++at;
    else if (line[at] == '"')
      return at;
  }
  return line.npos;
}

size_t skip_blanks(std::string_view line, size_t at) {
  while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
  return at;
}

// The end of an unquoted value: the comma or brace of the object around it.
size_t value_end(std::string_view line, size_t at) {
  for (int depth = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '"') {
      at = string_end(line, at + 1);
      if (at == line.npos) return at;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth-- == 0) return at;
    } else if (c == ',' && depth == 0) {
      return at;
    }
  }
  return line.npos;
}

template <size_t N>
bool is_one_of(std::string_view key, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, key) != names.end();
}

// Calls `of` with each field of the object whose brace is at `at`; false: the object is damaged.
template <class Of>
bool each_field(std::string_view line, size_t at, Of of) {
  at = skip_blanks(line, at + 1);
  for (size_t field = 0; field < kFields; ++field) {
    if (at >= line.size() || line[at] != '"') return false;
    const size_t key_end = string_end(line, at + 1);
    if (key_end == line.npos) return false;
    const std::string_view key = line.substr(at + 1, key_end - at - 1);
    at = skip_blanks(line, key_end + 1);
    if (at >= line.size() || line[at] != ':') return false;
    at = skip_blanks(line, at + 1);
    const bool quoted = at < line.size() && line[at] == '"';
    const size_t end = quoted ? string_end(line, at + 1) : value_end(line, at);
    if (end == line.npos) return false;
    const size_t begin = at + quoted;
    std::string_view value = line.substr(begin, end - begin);
    while (!quoted && value.ends_with(' ')) value.remove_suffix(1);
    of(key, value, quoted);
    at = skip_blanks(line, end + quoted);
    if (at >= line.size() || line[at] != ',') return true;
    at = skip_blanks(line, at + 1);
  }
  return true;
}

// Key names of structlog, python-json-logger, zap, zerolog, logrus, slog, log4j, Bunyan and the Elastic
// common schema.
constexpr std::array<std::string_view, 5> kMessage = {"msg", "message", "event", "text", "log"};
constexpr std::array<std::string_view, 8> kLevel = {"level",    "lvl",       "severity",      "levelname",
                                                    "loglevel", "log.level", "severity_text", "PRIORITY"};
constexpr std::array<std::string_view, 9> kException = {"exception",         "exc_info",    "exc_text",
                                                        "traceback",         "stack_trace", "stacktrace",
                                                        "error.stack_trace", "stack",       "exc"};
constexpr std::array<std::string_view, 3> kErrorKeys = {"error", "err", "errorMessage"};
// "host" and "node" are excluded: they often name the peer of a connection.
constexpr std::array<std::string_view, 6> kHost = {"hostname", "node_name", "host.name",
                                                   "nodename", "_HOSTNAME", "nodeName"};
constexpr std::array<std::string_view, 2> kRank = {"rank", "global_rank"};
// Keys for the program's line in Cloud Logging, journald, CloudWatch; docker's `log` counts only with its
// `stream`.
constexpr std::array<std::string_view, 3> kService = {"textPayload", "MESSAGE", "@message"};
constexpr std::array<std::string_view, 12> kTime = {"time",
                                                    "timestamp",
                                                    "@timestamp",
                                                    "ts",
                                                    "asctime",
                                                    "eventTime",
                                                    "lastTimestamp",
                                                    "firstTimestamp",
                                                    "__REALTIME_TIMESTAMP",
                                                    "_SOURCE_REALTIME_TIMESTAMP",
                                                    "generatedTimestamp",
                                                    "created"};
// Labels of log services name the writer.
constexpr std::array<std::string_view, 8> kLabelObjects = {"labels", "stream",   "kubernetes", "resource",
                                                           "k8s",    "metadata", "attributes", "container"};
constexpr std::array<std::string_view, 8> kLabelHost = {
    "host",     "node",     "node_name", "nodename",
    "hostname", "nodeName", "instance",  "compute.googleapis.com/resource_name"};
constexpr std::array<std::string_view, 4> kLabelPod = {"pod", "pod_name", "podName",
                                                       "io.kubernetes.pod.name"};
constexpr std::array<std::string_view, 2> kAboutObjects = {"involvedObject", "regarding"};
// Numbers that the logger itself adds, not measurements.
constexpr std::array<std::string_view, 14> kMeta = {
    "pid",     "tid", "process", "thread",     "line", "lineno",           "line_number",
    "version", "v",   "seq",     "world_size", "port", "local_world_size", "flags"};

uint32_t number_of(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : kNoRank;
}

// Pino and Bunyan number levels in tens, ascending; syslog and journald from 0 (most severe) to 7.
Level numbered_level(std::string_view key, uint32_t number) {
  constexpr std::array kSyslog = {Level::kFatal,   Level::kFatal, Level::kFatal, Level::kError,
                                  Level::kWarning, Level::kInfo,  Level::kInfo,  Level::kDebug};
  if (key == "PRIORITY") return number < kSyslog.size() ? kSyslog[number] : Level::kNone;
  constexpr std::array kTens = {Level::kNone,    Level::kDebug, Level::kDebug, Level::kInfo,
                                Level::kWarning, Level::kError, Level::kFatal};
  return number % 10 == 0 && number / 10 < kTens.size() ? kTens[number / 10] : Level::kNone;
}

// The role of a nested object in its record.
enum class Part : uint8_t { kTop, kPayload, kLabels, kError, kInvolved, kSource, kOther };

struct Field {
  std::string_view key, value;
  bool quoted = false;
  bool object() const { return !quoted && value.starts_with('{'); }
  bool list() const { return !quoted && value.starts_with('['); }
};

// Reads the fields of one record into a JsonLine.
class JsonReader {
 public:
  explicit JsonReader(JsonLine& out) : out_(out) {}

  // False: the object at `at` is damaged.
  bool read(std::string_view text, size_t at, Part part) {
    bool entity = false;
    std::string_view type;
    return each_field(text, at, [&](std::string_view key, std::string_view value, bool quoted) {
      const Field field{key, value, quoted};
      if (key == "entityType" && quoted) entity = true, type = value;
      if (key == "entityValue" && quoted && entity) add_part(type, value);
      take(field, part);
    });
  }

  void finish() {
    // A record of data has a field `text`, but no field that a logger adds.
    if (text_ && out_.time.empty() && out_.level == Level::kNone && out_.error.empty()) out_.message = {};
    // Loki's key for the line; other loggers use it for a line of source.
    if (labels_ && out_.message.empty() && !line_.empty()) out_.message = line_, service_ = true;
    if (out_.host.empty()) set_host(label_host_);  // labels may describe another object
    if (!out_.health.check.empty() && health_)
      out_.kind = JsonLine::Kind::kHealth;
    else if (!out_.reason.empty() && !out_.object.empty())
      out_.kind = JsonLine::Kind::kEvent;
    else if (service_ || !out_.lines.empty())
      out_.kind = JsonLine::Kind::kService;
    // A program chooses its identifier, but not the transport.
    out_.kernel = (transport_.empty() ? tag_ : transport_) == "kernel";
    out_.service = service();
  }

 private:
  static constexpr int kDepth = 8;  // of objects within each other

  void take(const Field& f, Part part) {
    if (f.object() || f.list()) return take_inner(f, part);
    switch (part) {
      case Part::kTop:
      case Part::kPayload:
        return take_own(f);
      case Part::kLabels:
        return take_label(f);
      case Part::kError:
        if (is_one_of(f.key, kException))
          out_.exception = f.value;
        else if (f.quoted && is_one_of(f.key, kMessage))
          out_.error = f.value;
        return;
      case Part::kInvolved:
        if (f.key == "kind") out_.object_kind = f.value;
        if (f.key == "name") out_.object = f.value;
        return;
      case Part::kSource:
        if (f.key == "host" && f.quoted) set_host(f.value);
        return;
      case Part::kOther:
        return take_health(f);
    }
  }

  void take_inner(const Field& f, Part part) {
    if (f.list() && is_one_of(f.key, kException) && part != Part::kOther) {
      out_.exception = f.value;  // the list format of sys.exc_info()
      return;
    }
    if (f.key == "errorCode" && f.list()) return take_codes(f.value);
    if (f.key == "values" && f.list() && out_.lines.empty() && f.value.starts_with("[[\"")) {
      out_.lines = f.value;
      return;
    }
    if (depth_ == kDepth) return;
    ++depth_;
    if (f.list())
      each_object(f.value, [&](size_t at) { read(f.value, at, Part::kOther); });
    else
      read(f.value, 0, part_of(f.key, part));
    --depth_;
  }

  // The role of the object at `key` within `part`.
  static Part part_of(std::string_view key, Part part) {
    if (is_one_of(key, kErrorKeys) || is_one_of(key, kException)) return Part::kError;
    if (part != Part::kOther || key == "involvedObject" || key == "regarding") {
      if (is_one_of(key, kAboutObjects)) return Part::kInvolved;
      if (key == "source") return Part::kSource;
    }
    if (part == Part::kLabels || is_one_of(key, kLabelObjects)) return Part::kLabels;
    if (part == Part::kTop && (key == "log" || key == "jsonPayload" || key == "fields" || key == "object"))
      return Part::kPayload;
    return Part::kOther;
  }

  template <class Of>
  void each_object(std::string_view list, Of of) {
    for (size_t at = 1; at < list.size();) {
      at = skip_blanks(list, at);
      if (at < list.size() && list[at] == '{') of(at);
      const size_t end = at < list.size() ? value_end(list, at) : list.npos;
      if (end == list.npos || list[end] != ',') return;
      at = end + 1;
    }
  }

  void take_own(const Field& f) {
    if (is_one_of(f.key, kRank)) {
      out_.rank = number_of(f.value);
    } else if (f.key == "local_rank") {
      out_.local = number_of(f.value);
    } else if (is_one_of(f.key, kException)) {
      if (out_.exception.empty()) out_.exception = f.value;
    } else if (is_one_of(f.key, kLevel)) {
      const Level word = f.quoted ? level_word(f.value) : Level::kNone;
      out_.level = word != Level::kNone ? word : numbered_level(f.key, number_of(f.value));
    } else if (is_one_of(f.key, kTime)) {
      if (out_.time.empty()) out_.time = f.value;
    } else if (!f.quoted) {
      const bool number = !f.value.empty() && (f.value[0] == '-' || (f.value[0] >= '0' && f.value[0] <= '9'));
      out_.has_numbers = out_.has_numbers || (number && !is_one_of(f.key, kMeta));
    } else {
      take_text(f);
    }
    take_health(f);
  }

  void take_text(const Field& f) {
    const bool service = is_one_of(f.key, kService);
    if (service || is_one_of(f.key, kMessage)) {
      if (out_.message.empty() || service) out_.message = f.value, text_ = f.key == "text";
      service_ = service_ || service;
      docker_ = docker_ || f.key == "log";
    } else if (f.key == "line") {
      line_ = f.value;
    } else if (is_one_of(f.key, kErrorKeys)) {
      if (out_.error.empty()) out_.error = f.value;
    } else if (is_one_of(f.key, kHost)) {
      set_host(f.value);
    } else if (f.key == "reason") {
      out_.reason = f.value;
    } else if (f.key == "stream" || f.key == "container_name" || f.key == "logStreamName") {
      stream_ = true;
    } else if (f.key == "_TRANSPORT" || f.key == "SYSLOG_IDENTIFIER") {
      (f.key == "_TRANSPORT" ? transport_ : tag_) = f.value;
    } else if (f.key == "_SYSTEMD_UNIT") {
      unit_ = f.value;
    } else if (f.key == "CONTAINER_NAME" || f.key == "CONTAINER_ID") {
      container_ = true;
    } else if (f.key == "type" && f.value == "Warning") {
      out_.level = Level::kWarning;
    }
    service_ = service_ || (docker_ && stream_);
  }

  void take_label(const Field& f) {
    labels_ = true;
    if (!f.quoted) return;
    if (is_one_of(f.key, kLabelHost) && label_host_.empty()) label_host_ = f.value;
    if (is_one_of(f.key, kLabelPod) && out_.pod.empty()) out_.pod = f.value;
  }

  void take_health(const Field& f) {
    if (f.key == "checkName" && f.quoted && out_.health.check.empty())
      out_.health.check = f.value;
    else if (f.key == "componentClass")
      out_.health.component = f.value;
    else if (f.key == "isFatal" || f.key == "isHealthy")
      health_ = true, healthy_ = healthy_ || (f.key == "isHealthy" && f.value == "true");
    else if (f.key == "message" && f.quoted && !out_.health.check.empty())
      out_.health.message = f.value;
    else if (f.key == "nodeName" && f.quoted && !out_.health.check.empty())
      out_.host = f.value;
    if (f.key == "isFatal" && f.value == "true") out_.level = Level::kFatal;
    if (healthy_) health_ = false;
  }

  void take_codes(std::string_view list) {
    for (size_t at = 1; at < list.size() && out_.health.code_count < out_.health.codes.size();) {
      const size_t open = list.find('"', at);
      const size_t close = open == list.npos ? open : string_end(list, open + 1);
      if (close == list.npos) return;
      out_.health.codes[out_.health.code_count++] = list.substr(open + 1, close - open - 1);
      at = close + 1;
    }
  }

  void add_part(std::string_view type, std::string_view name) {
    HealthEvent& event = out_.health;
    if (event.part_count < event.parts.size()) event.parts[event.part_count++] = {type, name};
  }

  void set_host(std::string_view name) {
    if (out_.host.empty() && name.find_first_of("\\ ") == name.npos) out_.host = name;
  }

  // Output of a container or user session is not the output of its service.
  Service service() const {
    const bool of_user = unit_.starts_with("user@") || (unit_.ends_with(".scope") && unit_ != "init.scope");
    if (out_.kernel || container_ || of_user || (tag_.empty() && unit_.empty())) return Service::kNone;
    return service_of(tag_.empty() ? unit_ : tag_);
  }

  JsonLine& out_;
  std::string_view label_host_, line_;
  std::string_view tag_, unit_, transport_;  // names of the writer in journald
  bool labels_ = false, container_ = false;
  int depth_ = 0;
  bool text_ = false;  // the message is a field `text`
  bool service_ = false, docker_ = false, stream_ = false, health_ = false, healthy_ = false;
};

// The code point of four hexadecimal digits; none if they are not.
std::optional<uint32_t> code_point(std::string_view digits) {
  uint32_t point = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), point, 16);
  const bool whole = digits.size() == 4 && end == digits.data() + digits.size();
  return error == std::errc() && whole ? std::optional(point) : std::nullopt;
}

void append_utf8(uint32_t point, std::string& out) {
  if (point < 0x80) {
    out += point < ' ' ? ' ' : static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | point >> 6);
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else {
    out += static_cast<char>(0xe0 | point >> 12);
    out += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  }
}

}  // namespace

std::optional<JsonLine> json_line(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  if (!line.starts_with('{') || !line.ends_with('}')) return std::nullopt;
  JsonLine out;
  JsonReader reader(out);
  if (!reader.read(line, 0, Part::kTop)) return std::nullopt;
  reader.finish();
  return out;
}

void append_unescaped(std::string_view text, std::string& out) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      out += text[at];
      continue;
    }
    const char c = text[++at];
    const auto point = c == 'u' ? code_point(text.substr(at + 1, 4)) : std::nullopt;
    if (point) {
      const bool surrogate = *point >= 0xd800 && *point < 0xe000;  // half of a surrogate pair
      append_utf8(surrogate ? '?' : *point, out);
      at += 4;
    } else if (c == 'n' || c == 'r' || c == 't') {
      out += ' ';
    } else {
      out += c;
    }
  }
}

std::string_view next_line(std::string_view& list) {
  // [["time", "line"], ["time", "line"]]
  const auto text = [&] {
    const size_t open = list.find('"');
    const size_t close = open == list.npos ? open : string_end(list, open + 1);
    if (close == list.npos) return list = {}, std::string_view();
    const std::string_view out = list.substr(open + 1, close - open - 1);
    list.remove_prefix(close + 1);
    return out;
  };
  text();
  return text();
}

std::string_view joined_exception(std::string_view text) {
  constexpr std::string_view kHead = "Traceback (most recent call last):\\n", kBreak = "\\n";
  const size_t head = text.rfind(kHead);
  if (head == text.npos) return {};
  text = text.substr(head + kHead.size());
  // The text ends at its closing quote; inner quotes are escaped.
  text = text.substr(0, std::min(text.size(), string_end(text, 0)));
  std::string_view last;
  while (!text.empty()) {
    size_t end = 0;
    while (end < text.size() && !text.substr(end).starts_with(kBreak)) end += text[end] == '\\' ? 2 : 1;
    const std::string_view part = text.substr(0, end);
    const bool indented = part.empty() || part[0] == ' ' || part.starts_with("\\t") || part[0] == '\t';
    if (!indented && last.empty()) last = part;  // later unindented lines belong to the exception's message
    text.remove_prefix(std::min(text.size(), end + kBreak.size()));
  }
  return last;
}

}  // namespace culprit::logs
