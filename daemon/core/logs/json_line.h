// Parses a line that is one JSON object from a structured logger, log service or health monitor. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/logs/header.h"

namespace culprit::logs {

// The event of a health monitor. Codes and parts beyond the arrays' sizes are ignored.
struct HealthEvent {
  std::string_view check;  // empty: the object has no such event
  std::string_view component, message;
  std::array<std::string_view, 4> codes;
  std::array<std::pair<std::string_view, std::string_view>, 6> parts;  // type and name of affected parts
  size_t code_count = 0, part_count = 0;
};

// Views into the line. Texts are verbatim, with their escapes.
struct JsonLine {
  // Who wrote the object, judged by its fields.
  enum class Kind : uint8_t {
    kLogger,   // the program's own logger
    kService,  // a log service, around the program's line
    kEvent,    // Kubernetes, about an object
    kHealth,   // a health monitor
  };
  Kind kind = Kind::kLogger;
  std::string_view message;              // empty: the object has none
  std::string_view error;                // an error field's text; empty: none
  std::string_view exception;            // a field with a traceback; empty: none
  std::string_view lines;                // a list of [time, line], as Loki writes it; empty: none
  std::string_view host;                 // of the writer
  std::string_view pod;                  // of the writer; only log services name it
  std::string_view time;                 // of the record
  std::string_view reason;               // of an event of Kubernetes
  std::string_view object_kind, object;  // the object of a Kubernetes event
  HealthEvent health;
  Level level = Level::kNone;
  uint32_t rank = kNoRank, local = kNoRank;
  bool kernel = false;               // a message of the kernel
  Service service = Service::kNone;  // by journald's name of the writer
  bool has_numbers = false;          // a field has a number that the program measured or counted
};

// The fields common to loggers and services; nothing if the line is no object.
std::optional<JsonLine> json_line(std::string_view line);

// Appends the value of a JSON string: escapes are resolved, line breaks become blanks.
void append_unescaped(std::string_view text, std::string& out);

// Removes and returns the next line of a list of [time, line]; empty at the end.
std::string_view next_line(std::string_view& list);

// The exception of a Python traceback whose lines are joined by "\n" in one text: the first line after its
// frames. Empty: the text has no traceback. The result ends at the text's closing quote, if any.
std::string_view joined_exception(std::string_view text);

}  // namespace culprit::logs
