// What running jobs report, as inputs of the controller: their progress, each finished checkpoint once, and
// what their loops did with advice. What is older than kFresh at its first sight, as after a restart, is no
// news. Pure; one thread. Memory: one entry per running job.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/jobs/live_event.h"
#include "core/recover/controller.h"

namespace culprit::app {

class JobReports {
 public:
  // Reports of ranks arrive within so long of each other.
  static constexpr TimeNs kSettled = 2 * kNsPerSecond;
  static constexpr TimeNs kFresh = 60 * kNsPerSecond;

  // `job`: the controller's identity of the job. `summary` has an iteration.
  std::vector<recover::Input> read(const ScheduledJob& job, const LiveJobSummary& summary, TimeNs now);
  // Jobs without a read() since the last call are forgotten.
  void forget_others();

 private:
  struct Given {
    uint32_t run = 0;
    TimeNs saved_ns = kNoTime;
    std::map<uint64_t, AdviceSummary> advice;
    bool read = false;
  };
  std::map<std::string, Given> given_;  // by culprit's id
};

}  // namespace culprit::app
