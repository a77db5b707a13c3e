// Sends one request to a helper program that has rights of its own, and returns the lines of its answer: over
// the socket of its systemd unit if available, else from a process with our own rights. Blocking; any thread
// but the loop's.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

struct HelperWay {
  std::string name;     // of the program: "culprit-capture"
  std::string socket;   // of its unit
  std::string program;  // empty: in the running program's folder, or the installed one
};
struct HelperLines {
  std::vector<std::string> lines;
  uint64_t dropped = 0;  // lines dropped as too long, or beyond the limit of bytes
};
struct HelperLimits {
  TimeNs within_ns = 0;                     // the request's own time limit; a margin is added
  size_t bytes = 16 << 20;                  // limit of all lines
  const std::atomic<bool>* stop = nullptr;  // ends the wait early; borrowed
};
Result<HelperLines> ask_helper(const HelperWay& way, std::string_view request, const HelperLimits& limits);

}  // namespace culprit::app
