// Takes a program's own line out of the object that a structured logger, a log service (Cloud Logging,
// journald, CloudWatch, Loki, Docker), Kubernetes or a health monitor put around it. The only place that does
// so. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/logs/header.h"

namespace culprit::logs {

struct Unwrapped {
  std::string_view text;  // a part of the line, or the end of `made`
  bool made = false;      // it is the end of `made`
  // What the object says of the writer: the line itself may know better.
  std::string_view host, time;
  Level level = Level::kNone;
  uint32_t rank = kNoRank, local = kNoRank;
  bool kernel = false;
  Service service = Service::kNone;
};

// None: the line is no such object, or one whose fields belong together, such as the metrics of a step.
// Appends to `made` where the text does not stand in the line as it is, never more than the line's size; the
// caller keeps its memory in place.
std::optional<Unwrapped> unwrap(std::string_view line, std::string& made);

// The words of a line that a person should read: of an object its message, else the line.
std::string_view words_of(std::string_view line);

}  // namespace culprit::logs
