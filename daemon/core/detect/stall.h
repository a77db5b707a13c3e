// A job that stops making progress while it runs: judged against a clock, so that it is seen while nothing is
// written. Offline reports never ask. Pure: time is an argument, and is the shell's, not the lines'.
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
  TimeNs after_ns = 60 * kNsPerSecond;  // FORMATS.md section 8 [hang]
  int64_t steps = 5;                    // times the median step
};

// A process tells that it reached a step, without a line of a log.
struct ProgressSeen {
  int64_t step = 0;
  uint32_t rank = 0;  // any number that is the process's own
};

// A process tells that something begins or ends in which no iterations are to be expected.
struct PhaseSeen {
  std::string name;
  bool begins = false;
  uint32_t rank = 0;
};

class ProgressWatch {
 public:
  // After each batch: `moves` is Iterations::moves().
  void lines(uint64_t moves, TimeNs now);
  void beat(const ProgressSeen& seen, TimeNs now);
  void phase(const PhaseSeen& seen, TimeNs now);
  // Something went on in a job that numbers no steps.
  void moves(TimeNs now) { moved_ns_ = std::max(moved_ns_, now); }
  // Cheap: whether find_stall() is worth asking, by the median step that it found last.
  bool may_stall(const StallOptions& options, TimeNs now) const;
  // `log` is settled. A fault of symptom hang, or nothing where the job goes on, may do so or never iterated.
  std::optional<Finding> find_stall(const logs::JobLog& log, const StallOptions& options, TimeNs now);
  // When the job last moved on, as its lines tell, else when they came.
  TimeNs moved_ns(const logs::JobLog& log) const;
  TimeNs last_move_ns() const { return moved_ns_; }  // on step()'s clock
  int64_t beaten() const { return furthest_; }       // the furthest step of heartbeats, -1: none

 private:
  bool announced(const logs::JobLog& log, TimeNs now) const;
  TimeNs beat_step() const;

  uint64_t moves_ = 0;
  TimeNs moved_ns_ = kNoTime;  // of the last progress, of whatever kind
  TimeNs beaten_ns_ = kNoTime,
         lines_ns_ = kNoTime;  // of the last heartbeat; when the last line of progress came
  TimeNs began_ns_ = kNoTime;  // of the first that lines told
  TimeNs step_ns_ = 0;         // median, as found last; 0: not known
  int64_t furthest_ = -1;
  std::unordered_map<uint32_t, int64_t> steps_;  // by process
  int64_t paced_step_ = -1;                      // of the first process that beat
  uint32_t pacer_ = 0;
  TimeNs paced_ns_ = kNoTime;
  std::vector<TimeNs> paces_;                                // its last steps' times
  std::map<std::pair<uint32_t, std::string>, TimeNs> open_;  // phases, by when they began
};

}  // namespace culprit::detect
