// Detects whether the daemon itself makes progress. Completed work of the loop and the workers counts as
// progress, not a timer: a hung daemon must not feed its watchdog. Pure: time (monotonic) is an argument. The
// loop's thread only; work of the workers ends in `done` callbacks there.
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
    TimeNs beat_every_ns = kNsPerSecond;  // interval of loop_beat()
    // A callback only decodes and enqueues: a longer delay means that the loop is blocked.
    TimeNs loop_late_ns = 5 * kNsPerSecond;
    // The engine takes milliseconds for a batch and seconds for the report of a large job. The watchdog has
    // 30 s.
    TimeNs engine_stuck_ns = 20 * kNsPerSecond;
    // For a hung disk or mount: only reported, since killing the process would not help.
    TimeNs store_stuck_ns = 20 * kNsPerSecond;
  };
  enum class Part : uint8_t { kEngine, kStore };

  SelfWatch() : SelfWatch(Limits()) {}
  explicit SelfWatch(Limits limits) : limits_(limits) {}

  void loop_beat(TimeNs now);
  // A worker got work; `what` describes the work in sentences ("a batch of 64 KB"). Several works may run.
  void started(Part part, TimeNs now, std::string what);
  // The oldest work ended. A failure of the store lasts until its next success.
  void done(Part part, TimeNs now, const Status& outcome = {});
  // The index of results: state after its last write.
  void index(const Status& state) { index_failure_ = state ? std::string() : state.error().text; }
  // The file of alerts: state after its opening or last write.
  void alerts(const Status& state) { alerts_failure_ = state ? std::string() : state.error().text; }
  // The oldest work takes long but made progress.
  void gets_on(Part part, TimeNs now) { of(part).since_ns = now; }

  // Why the daemon hangs; the watchdog is then not fed. Nothing if it makes progress.
  std::optional<std::string> stuck(TimeNs now) const;
  // For GET /healthz: stuck(), and problems that a restart does not solve.
  std::optional<std::string> unhealthy(TimeNs now) const;

  struct Counters {
    TimeNs loop_late_ns = 0, loop_late_max_ns = 0;  // delay of the last beat; maximum since the start
    uint64_t engine_done = 0, store_done = 0, store_failed = 0;
    TimeNs engine_waits_ns = 0, store_waits_ns = 0;  // age of the oldest running work
  };
  Counters counters(TimeNs now) const;

 private:
  struct Progress {
    uint64_t given = 0, done = 0, failed = 0;
    TimeNs since_ns = 0;  // start of the oldest work, or end of the previous work if later
    std::string what, failure;
    std::deque<std::string> waiting;  // work after `what`
  };
  std::optional<std::string> held_up(Part part, TimeNs now) const;
  Progress& of(Part part) { return parts_[static_cast<size_t>(part)]; }
  const Progress& of(Part part) const { return parts_[static_cast<size_t>(part)]; }

  Limits limits_;
  TimeNs beat_ns_ = kNoTime, late_ns_ = 0, late_max_ns_ = 0;
  std::array<Progress, 2> parts_;
  std::string index_failure_, alerts_failure_;
};

// Resource use of the process as the kernel counts it. Blocks for some tens of microseconds.
struct SelfUsage {
  uint64_t anonymous_bytes = 0, resident_bytes = 0, descriptors = 0, descriptors_max = 0;
  TimeNs cpu_ns = 0;
};
SelfUsage read_self_usage();

}  // namespace culprit::app
