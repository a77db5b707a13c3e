// A line that is one JSON object, as structured loggers, log services and health monitors write it. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/logs/header.h"

namespace culprit::logs {

// The event of a health monitor. Later parts than fit are not read.
struct HealthEvent {
  std::string_view check;  // empty: the object has no such event
  std::string_view component, message;
  std::array<std::string_view, 4> codes;
  std::array<std::pair<std::string_view, std::string_view>, 6> parts;  // type and name of what it is about
  size_t code_count = 0, part_count = 0;
};

// Views into the line. Texts are as they stand there, with their escapes.
struct JsonLine {
  // What the fields say about who wrote the object.
  enum class Kind : uint8_t {
    kLogger,   // the program's own logger
    kService,  // a log service, around the program's line
    kEvent,    // Kubernetes, about an object
    kHealth,   // a health monitor
  };
  Kind kind = Kind::kLogger;
  std::string_view message;              // empty: the object has none
  std::string_view error;                // what an error says of itself; empty: none
  std::string_view exception;            // a field with a traceback; empty: none
  std::string_view lines;                // a list of [time, line], as Loki writes it; empty: none
  std::string_view host;                 // of the writer
  std::string_view pod;                  // of the writer; only log services name it
  std::string_view time;                 // of the record
  std::string_view reason;               // of an event of Kubernetes
  std::string_view object_kind, object;  // that such an event is about
  HealthEvent health;
  Level level = Level::kNone;
  uint32_t rank = kNoRank, local = kNoRank;
  bool kernel = false;               // a message of the kernel
  Service service = Service::kNone;  // as journald names the writer
  bool has_numbers = false;          // a field has a number that the program measured or counted
};

// The fields that loggers and services agree on; none for a line that is no object.
std::optional<JsonLine> json_line(std::string_view line);

// Appends the text that a JSON string stands for: its escapes are resolved, line breaks become blanks.
void append_unescaped(std::string_view text, std::string& out);

// The next line of a list of [time, line], which is removed from the list. Empty at its end.
std::string_view next_line(std::string_view& list);

// The exception of a Python traceback whose lines are joined by "\n" in one text: the first line behind its
// frames. Empty: the text has no traceback. Ends at the quote that ends the text, if it has one.
std::string_view joined_exception(std::string_view text);

}  // namespace culprit::logs
