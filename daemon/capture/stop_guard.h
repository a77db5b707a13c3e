// Leaves a process as it was when a tool that traces it ends: running if it ran, stopped if somebody stopped
// it meanwhile. A tracer that is killed can leave the process stopped, and the kernel does not say whose stop
// it is. So a program of its own watches the process from before the tool starts. It outlives the capture: if
// that is killed half-way, the guard waits for the end of the tool, and lets the process go on.
//
// Blocking; one thread. Begin it before the tool, end it after.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "capture/request.h"

namespace culprit::capture {

class StopGuard {
 public:
  // `target` is not stopped.
  explicit StopGuard(const Target& target);
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

  // The tool's process.
  void started(pid_t tool);
  // The tool ended; `clean`: by itself and with success, so that it has detached. Returns what was wrong with
  // the process, or nothing.
  std::string end(bool clean);

 private:
  Target target_;
  int to_ = -1;  // the guard's pipe
  pid_t pid_ = -1;
};

// What was seen of a process in a moment, as /proc/PID/status has it.
struct StopView {
  char state = '?';
  bool traced = false;
  bool stop_pending = false;  // a stop sent to the process waits for its tracer; a tracer's own is a thread's
  bool tool_lives = true;     // after the moment
};
// Whether somebody else stopped the process, from moments in their order.
class StopWatch {
 public:
  void add(const StopView& view);
  bool asked() const { return stopped_ || pending_; }

 private:
  bool stopped_ = false;  // before a tracer came
  bool pending_ = false;
};

}  // namespace culprit::capture
