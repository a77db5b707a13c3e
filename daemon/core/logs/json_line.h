// A line that is one JSON object, as structured loggers write it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/logs/header.h"

namespace culprit::logs {

// Views into the line. Texts are as they stand there, with their escapes.
struct JsonLine {
  std::string_view message;    // empty: the object has none
  std::string_view error;      // what an error says of itself; empty: none
  std::string_view exception;  // a field with a traceback; empty: none
  std::string_view host;
  Level level = Level::kNone;
  uint32_t rank = kNoRank, local = kNoRank;
};

// The fields at the top of the object that loggers agree on; none for a line that is no object.
std::optional<JsonLine> json_line(std::string_view line);

// The exception of a Python traceback whose lines are joined by "\n" in one text: the first line behind its
// frames. Empty: the text has no traceback. Ends at the quote that ends the text, if it has one.
std::string_view joined_exception(std::string_view text);

}  // namespace culprit::logs
