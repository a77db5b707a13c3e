// Detects that a running job stopped making progress. A clock decides, so a hang is found without new log
// lines. Offline reports do not use this. Pure: time is an argument, and is the daemon's time, not that of
// log lines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "core/logs/job_log.h"
#include "model/finding.h"

namespace culprit::detect {

struct StallOptions {
  TimeNs after_ns = 60 * kNsPerSecond;  // docs/formats.md section 8 [hang]
  int64_t steps = 5;                    // times the median step
};

// A process's report that it reached a step, independent of log lines.
struct ProgressSeen {
  int64_t step = 0;
  uint32_t rank = 0;  // any number that identifies the process
};

// A process's report that a phase without iterations begins or ends.
struct PhaseSeen {
  std::string name;
  bool begins = false;
  uint32_t rank = 0;
};

class ProgressWatch {
 public:
  // Call after each batch; `moves` is Iterations::moves().
  void lines(uint64_t moves, TimeNs now);
  void beat(const ProgressSeen& seen, TimeNs now);
  void phase(const PhaseSeen& seen, TimeNs now);
  // Reports activity of a job that does not number its steps.
  void moves(TimeNs now) { move(now); }
  // Whether a stop may be something else than a hang: an announced phase, or the first step, which may
  // compile for minutes. `log` is settled.
  bool excused(const logs::JobLog& log, const StallOptions& options, TimeNs now) const;
  // Cheap pre-check: whether to call find_stall(), by the median step of its last call.
  bool may_stall(const StallOptions& options, TimeNs now) const;
  // Whether the job progresses, or announced a phase without steps.
  bool goes_on(const logs::JobLog& log, const StallOptions& options, TimeNs now) const;
  // `log` is settled. Returns a fault with symptom hang; empty if the job makes progress, may make progress,
  // or never iterated.
  std::optional<Finding> find_stall(const logs::JobLog& log, const StallOptions& options, TimeNs now);
  // Time of the last progress: from the log lines if they have times, else their arrival.
  TimeNs moved_ns(const logs::JobLog& log) const;
  TimeNs last_move_ns() const { return moved_ns_; }  // on step()'s clock
  int64_t beaten() const { return furthest_; }       // highest step of any heartbeat; -1: none

 private:
  void move(TimeNs now) {
    moved_ns_ = std::max(moved_ns_, now);
    if (started_ns_ == kNoTime) started_ns_ = now;
  }
  bool announced(const logs::JobLog& log, TimeNs now) const;
  TimeNs beat_step() const;
  // Whether the job is known to have more than one process.
  bool several_processes(const logs::JobLog& log) const;

  uint64_t moves_ = 0;
  TimeNs moved_ns_ = kNoTime;    // last progress of any kind
  TimeNs started_ns_ = kNoTime;  // first progress of any kind
  // `beaten_ns_`: last heartbeat. `lines_ns_`: arrival of the last line with progress.
  TimeNs beaten_ns_ = kNoTime, lines_ns_ = kNoTime;
  TimeNs began_ns_ = kNoTime;  // first progress in lines
  TimeNs step_ns_ = 0;         // last known median; 0: unknown
  int64_t furthest_ = -1;
  std::unordered_map<uint32_t, int64_t> steps_;  // by process
  int64_t paced_step_ = -1;                      // last step of the first process that sent heartbeats
  uint32_t pacer_ = 0;
  TimeNs paced_ns_ = kNoTime;
  std::vector<TimeNs> paces_;                                // the last step times of that process
  std::map<std::pair<uint32_t, std::string>, TimeNs> open_;  // open phases, with their start
};

}  // namespace culprit::detect
