// Extracts a program's own line from the object around it: of a structured logger, a log service (Cloud
// Logging, journald, CloudWatch, Loki, Docker), Kubernetes or a health monitor. No other code does this.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/logs/header.h"

namespace culprit::logs {

struct Unwrapped {
  std::string_view text;  // a part of the line, or the last text in `made`
  bool made = false;      // `text` is the last text in `made`
  // Fields of the object about the writer; the inner line's own header takes precedence.
  std::string_view host, time;
  Level level = Level::kNone;
  uint32_t rank = kNoRank, local = kNoRank;
  bool kernel = false;
  Service service = Service::kNone;
};

// Returns nothing for a line that is no such object, or whose fields belong together, such as the metrics of
// a step. If the text does not occur verbatim in the line, it is appended to `made`, with at most the line's
// size. The caller must prevent reallocation of `made`.
std::optional<Unwrapped> unwrap(std::string_view line, std::string& made);

// The readable text of a line: the message of an object, else the line.
std::string_view words_of(std::string_view line);

}  // namespace culprit::logs
