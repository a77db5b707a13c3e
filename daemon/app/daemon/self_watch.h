// Whether the daemon itself gets on: fed by what the loop and the workers have done, never by a timer alone,
// so that a watchdog fed by it is not fed by a daemon that hangs. Pure: time (monotonic) is an argument. The
// loop's thread only; the workers' ends come to it as their `done` callbacks.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

class SelfWatch {
 public:
  struct Limits {
    TimeNs beat_every_ns = kNsPerSecond;  // how often the loop means to call loop_beat
    // A callback only decodes and enqueues: a loop that is later than this does something else.
    TimeNs loop_late_ns = 5 * kNsPerSecond;
    // A batch of the engine takes milliseconds, a report of a large job seconds; the watchdog has 30 s.
    TimeNs engine_stuck_ns = 20 * kNsPerSecond;
    // A hung disk or mount: told, but killing the process would not mend it.
    TimeNs store_stuck_ns = 20 * kNsPerSecond;
  };
  enum class Part : uint8_t { kEngine, kStore };

  SelfWatch() : SelfWatch(Limits()) {}
  explicit SelfWatch(Limits limits) : limits_(limits) {}

  void loop_beat(TimeNs now);
  // Work was given to a worker; `what` it is, for the sentence ("a batch of 64 KB"). Several may be under
  // way.
  void given(Part part, TimeNs now, std::string what);
  // The oldest of them came back. A failure of the store lasts until its next success.
  void done(Part part, TimeNs now, const Status& outcome = {});
  // The oldest of them is long, and has come further.
  void gets_on(Part part, TimeNs now) { of(part).since_ns = now; }

  // Why the daemon cannot go on by itself: then the watchdog is not fed. Nothing: it gets on.
  std::optional<std::string> stuck(TimeNs now) const;
  // What GET /healthz tells: the same, and trouble that a restart does not mend.
  std::optional<std::string> unhealthy(TimeNs now) const;

  struct Figures {
    TimeNs loop_late_ns = 0, loop_late_max_ns = 0;  // of the last beat, and since the start
    uint64_t engine_done = 0, store_done = 0, store_failed = 0;
    TimeNs engine_waits_ns = 0, store_waits_ns = 0;  // the oldest work under way
  };
  Figures figures(TimeNs now) const;

 private:
  struct Progress {
    uint64_t given = 0, done = 0, failed = 0;
    TimeNs since_ns = 0;  // the later of: the oldest work was given, the last one came back
    std::string what, failure;
    std::deque<std::string> waiting;  // behind `what`
  };
  std::optional<std::string> held_up(Part part, TimeNs now) const;
  Progress& of(Part part) { return parts_[static_cast<size_t>(part)]; }
  const Progress& of(Part part) const { return parts_[static_cast<size_t>(part)]; }

  Limits limits_;
  TimeNs beat_ns_ = kNoTime, late_ns_ = 0, late_max_ns_ = 0;
  std::array<Progress, 2> parts_;
};

// What the process uses, as the kernel tells. Blocks for some tens of microseconds.
struct SelfUsage {
  uint64_t anonymous_bytes = 0, resident_bytes = 0, descriptors = 0, descriptors_max = 0;
  TimeNs cpu_ns = 0;
};
SelfUsage read_self_usage();

}  // namespace culprit::app
