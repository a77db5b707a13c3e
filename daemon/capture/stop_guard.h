// Restores the state of a process after a tracing tool: running if it ran, stopped if someone else stopped
// it meanwhile. A killed tracer can leave the process stopped, and the kernel does not say who stopped it.
// So a separate guard process watches the target from before the tool starts. The guard outlives the
// capture: if the capture is killed, the guard waits for the end of the tool and resumes the process.
//
// Blocking; one thread. Construct it before the tool starts; call end() after the tool.
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

// State of a process at one moment, from /proc/PID/status.
struct StopView {
  char state = '?';
  bool traced = false;
  bool stop_pending = false;  // a stop for the whole process is pending; a tracer's own stop is per thread
  bool tool_lives = true;     // after the moment
};
// Decides from successive views whether someone other than the tracer stopped the process.
class StopWatch {
 public:
  void add(const StopView& view);
  bool asked() const { return stopped_ || pending_; }

 private:
  bool stopped_ = false;  // before a tracer came
  bool pending_ = false;
};

}  // namespace culprit::capture
