// Sends a request to culprit-capture and returns the lines of its answer: over the socket of its systemd unit
// if available, else from a process with our own rights. Blocking; any thread but the loop's.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/status.h"
#include "capture/request.h"

namespace culprit::app {

// The socket of the unit culprit-capture.socket.
inline constexpr const char* kCaptureSocket = "/run/culprit-capture/socket";

struct CaptureWay {
  std::string socket = kCaptureSocket;
  std::string program;  // empty: in the running program's folder, or the installed one
};
struct CaptureLines {
  std::vector<std::string> lines;
  uint64_t dropped = 0;  // lines dropped as too long, or beyond the limit of bytes
};
struct CaptureLimits {
  size_t bytes = 16 << 20;                  // limit of all lines
  const std::atomic<bool>* stop = nullptr;  // ends the wait early; borrowed
};
Result<CaptureLines> run_capture(const CaptureWay& way, const capture::Request& request,
                                 const CaptureLimits& bounds = {});

}  // namespace culprit::app
