#include "core/logs/unwrap.h"

#include <algorithm>
#include <array>

#include "core/logs/json_line.h"

namespace culprit::logs {
namespace {

// Appends parts to a text, at most `limit` bytes in total.
class Maker {
 public:
  Maker(std::string& out, size_t limit) : out_(out), begin_(out.size()), end_(out.size() + limit) {}

  // `before` is appended only if the part is not empty.
  Maker& add(std::string_view before, std::string_view part) {
    if (part.empty()) return *this;
    out_ += before.substr(0, room());
    append_unescaped(part.substr(0, room()), out_);  // unescaping never lengthens a text
    return *this;
  }

  std::string_view text() const { return std::string_view(out_).substr(begin_); }

 private:
  size_t room() const { return end_ - out_.size(); }

  std::string& out_;
  size_t begin_, end_;
};

// "GPU SysLogsXIDError: XID 13, PCI 0001:00:00, GPC 0": the check, its message or codes, and the parts.
void describe(const JsonLine& json, Maker& to) {
  const HealthEvent& event = json.health;
  to.add("", event.component);
  to.add(event.component.empty() ? "" : " ", event.check).add(": ", event.message);
  const bool xid = event.check.find("XID") != event.check.npos || event.check.find("Xid") != event.check.npos;
  for (size_t i = 0; i < event.code_count; ++i)
    to.add(i > 0 || !event.message.empty() ? ", " : ": ", xid ? "XID " : "error code ")
        .add("", event.codes[i]);
  for (size_t i = 0; i < event.part_count; ++i)
    to.add(", ", event.parts[i].first).add(" ", event.parts[i].second);
}

// "FailedMount pod/train-0: MountVolume.SetUp failed ...", as kubectl prints events.
void describe_event(const JsonLine& json, Maker& to) {
  to.add("", json.reason).add(" ", json.object_kind).add("/", json.object).add(": ", json.message);
}

void join_lines(std::string_view list, Maker& to) {
  bool first = true;
  while (true) {
    const std::string_view line = next_line(list);
    if (list.empty() && line.empty()) return;
    to.add(first ? "" : " | ", line);
    first = false;
  }
}

bool is_plain(std::string_view text) { return text.find('\\') == text.npos; }

// The failure in a program's own log record: the exception of a traceback.
std::string_view report_of(const JsonLine& json) {
  for (const std::string_view field : {json.exception, json.message, json.error})
    if (const std::string_view exception = joined_exception(field); !exception.empty()) return exception;
  return {};
}

// "\"textPayload\": \"RuntimeError: ...\",": the message field of an object that was printed over several
// lines.
std::optional<Unwrapped> unwrap_field(std::string_view line, std::string& made) {
  constexpr std::array<std::string_view, 7> kKeys = {"textPayload", "message", "msg",     "log",
                                                     "MESSAGE",     "text",    "@message"};
  const size_t end = line.find('"', 1);
  if (end == line.npos || std::ranges::find(kKeys, line.substr(1, end - 1)) == kKeys.end())
    return std::nullopt;
  std::string_view value = line.substr(end + 1);
  for (const char c : {':', '"'}) {
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    if (!value.starts_with(c)) return std::nullopt;
    value.remove_prefix(1);
  }
  if (value.ends_with(',')) value.remove_suffix(1);
  if (!value.ends_with('"') || value.size() < 2) return std::nullopt;
  value.remove_suffix(1);
  Unwrapped out;
  const std::string_view exception = joined_exception(value);
  out.text = exception.empty() ? value : exception;
  if (is_plain(out.text)) return out;
  out.text = Maker(made, line.size()).add("", out.text).text();
  out.made = true;
  return out;
}

}  // namespace

std::optional<Unwrapped> unwrap(std::string_view line, std::string& made) {
  if (line.starts_with('"')) return unwrap_field(line, made);
  const auto json = json_line(line);
  if (!json) return std::nullopt;
  using Kind = JsonLine::Kind;
  Unwrapped out{{},         false,       json->host,   json->time,   json->level,
                json->rank, json->local, json->kernel, json->service};
  if (out.host.empty()) out.host = json->pod;
  Maker maker(made, line.size());
  const std::string_view exception = report_of(*json);
  if (json->kind == Kind::kHealth) {
    describe(*json, maker);
  } else if (json->kind == Kind::kEvent) {
    if (out.host.empty()) out.host = json->object;
    describe_event(*json, maker);
  } else if (!json->lines.empty()) {
    join_lines(json->lines, maker);
  } else if (!exception.empty()) {
    out.text = exception;
  } else if (json->kind == Kind::kService) {
    out.text = json->message;
  } else if (json->level >= Level::kError) {
    if (json->error.empty() || json->message.empty())
      out.text = json->error.empty() ? json->message : json->error;
    else
      maker.add("", json->message).add(": ", json->error);
  } else if (!json->has_numbers) {
    out.text = json->message;
  }
  if (!out.text.empty() && is_plain(out.text)) return out;
  if (!out.text.empty()) maker.add("", out.text);
  out.text = maker.text();
  out.made = true;
  return out.text.empty() ? std::nullopt : std::optional(out);
}

std::string_view words_of(std::string_view line) {
  const auto json = json_line(line);
  return json && !json->message.empty() ? json->message : line;
}

}  // namespace culprit::logs
