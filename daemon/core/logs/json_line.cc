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

// The end of a value that is no string: at the comma or brace of the object around it.
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

// As structlog, python-json-logger, zap, zerolog, logrus, log4j, Bunyan and the Elastic common schema name
// them.
constexpr std::array<std::string_view, 5> kMessage = {"msg", "message", "event", "text", "log"};
constexpr std::array<std::string_view, 7> kLevel = {"level",    "lvl",       "severity",     "levelname",
                                                    "loglevel", "log.level", "severity_text"};
constexpr std::array<std::string_view, 9> kException = {"exception",         "exc_info",    "exc_text",
                                                        "traceback",         "stack_trace", "stacktrace",
                                                        "error.stack_trace", "stack",       "exc"};
constexpr std::array<std::string_view, 3> kError = {"error", "err", "errorMessage"};
// Not "host" and "node": as often they name the other end of a connection.
constexpr std::array<std::string_view, 4> kHost = {"hostname", "node_name", "host.name", "nodename"};
constexpr std::array<std::string_view, 2> kRank = {"rank", "global_rank"};

uint32_t number_of(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : kNoRank;
}

// Pino and Bunyan count levels by ten.
Level numbered_level(uint32_t number) {
  switch (number) {
    case 60:
      return Level::kFatal;
    case 50:
      return Level::kError;
    case 40:
      return Level::kWarning;
    case 30:
      return Level::kInfo;
    default:
      return Level::kNone;
  }
}

void take(std::string_view key, std::string_view value, bool quoted, JsonLine& out) {
  if (is_one_of(key, kRank)) {
    out.rank = number_of(value);
  } else if (key == "local_rank") {
    out.local = number_of(value);
  } else if (is_one_of(key, kException)) {
    if (out.exception.empty()) out.exception = value;  // also a list, as sys.exc_info() gives it
  } else if (is_one_of(key, kLevel)) {
    out.level = quoted ? level_word(value) : numbered_level(number_of(value));
  } else if (!quoted) {
    return;
  } else if (is_one_of(key, kMessage)) {
    if (out.message.empty()) out.message = value;
  } else if (is_one_of(key, kError)) {
    if (out.error.empty()) out.error = value;
  } else if (is_one_of(key, kHost) && value.find_first_of("\\ ") == value.npos) {
    if (out.host.empty()) out.host = value;
  }
}

// Calls `of` with each field of the object whose brace is at `at`; false: it is damaged.
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

// An object within the line: of the error, of the logger, or around all of the program's own fields.
void take_object(std::string_view key, std::string_view object, JsonLine& out) {
  const bool of_error = is_one_of(key, kError) || is_one_of(key, kException);
  if (!of_error && key != "log" && key != "jsonPayload" && key != "fields") return;
  each_field(object, 0, [&](std::string_view name, std::string_view value, bool quoted) {
    if (!of_error)
      take(name, value, quoted, out);
    else if (is_one_of(name, kException))
      out.exception = value;
    else if (quoted && is_one_of(name, kMessage))
      out.error = value;
  });
}

}  // namespace

std::optional<JsonLine> json_line(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  if (!line.starts_with('{') || !line.ends_with('}')) return std::nullopt;
  JsonLine out;
  const bool whole = each_field(line, 0, [&](std::string_view key, std::string_view value, bool quoted) {
    if (!quoted && value.starts_with('{'))
      take_object(key, value, out);
    else
      take(key, value, quoted, out);
  });
  return whole ? std::optional(out) : std::nullopt;
}

std::string_view joined_exception(std::string_view text) {
  constexpr std::string_view kHead = "Traceback (most recent call last):\\n", kBreak = "\\n";
  const size_t head = text.rfind(kHead);
  if (head == text.npos) return {};
  text = text.substr(head + kHead.size());
  // The text ends at its quote; quotes within it are escaped.
  text = text.substr(0, std::min(text.size(), string_end(text, 0)));
  std::string_view last;
  while (!text.empty()) {
    size_t end = 0;
    while (end < text.size() && !text.substr(end).starts_with(kBreak)) end += text[end] == '\\' ? 2 : 1;
    const std::string_view part = text.substr(0, end);
    const bool indented = part.empty() || part[0] == ' ' || part.starts_with("\\t") || part[0] == '\t';
    if (!indented && last.empty()) last = part;  // what follows is its own text, of several lines
    text.remove_prefix(std::min(text.size(), end + kBreak.size()));
  }
  return last;
}

}  // namespace culprit::logs
