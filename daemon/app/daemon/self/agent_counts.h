// The daemon's counters about itself. A plain value; the loop's thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace culprit::app {

// Counts since the start that no other part has.
struct AgentCounts {
  TimeNs started_ns = 0;
  uint64_t reloads = 0, reloads_refused = 0;
  uint64_t errors_reported = 0;              // sentences written to the log
  uint64_t holds = 0;                        // times that sources were paused for lack of credit
  size_t store_bytes = 0, engine_bytes = 0;  // bytes in queued batches
  bool restored = false;
};

}  // namespace culprit::app
