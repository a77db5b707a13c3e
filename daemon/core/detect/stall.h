// A job that stopped making progress while it runs: judged against a clock, so that it is seen while nothing
// is written. Offline reports never ask. Pure: a function of what is known and the time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/finding.h"

namespace culprit::detect {

struct StallOptions {
  TimeNs after_ns = 60 * kNsPerSecond;  // FORMATS.md section 8 [hang]
  int64_t steps = 5;                    // times the median step
};

// What a job has told of its progress, by its lines or its heartbeats.
struct ProgressState {
  TimeNs last_ns = kNoTime;     // of its last progress, on the clock that `now` is of
  int64_t iteration = -1;       // -1: nothing counts
  TimeNs step_ns = 0;           // median; 0: not known
  bool announced = false;       // a phase in which no iterations come: evaluation, checkpoint, compile
  bool ended = false;           // or about to
  std::vector<Evidence> lines;  // its last progress
};

// A fault of symptom hang, or nothing where it goes on, may do so or never iterated.
std::optional<Finding> find_stall(const ProgressState& state, const StallOptions& options, TimeNs now);

}  // namespace culprit::detect
