// The effective training time ratio of a run (ETTR): the share of its time that its steps would have taken at
// their median pace. Stops, the time until the first step, and steps repeated after a restart count as lost.
// Pure; time is an argument.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/time.h"

namespace culprit::app {

using StepTime = std::pair<TimeNs, int64_t>;  // time at which a step was first reached, and the step

struct RunTimes {
  TimeNs first_ns = kNoTime;       // time of the run's first data
  TimeNs progressed_ns = kNoTime;  // last sign of progress; kNoTime: the time of the last step
  TimeNs until_ns = kNoTime;       // now, or the end of the run
};

// 0 to 1. Nothing if unknown: without times, with fewer than 10 steps, or if the steps' times are of another
// day than the run's.
std::optional<double> effective_time_ratio(std::span<const StepTime> track, const RunTimes& times);

// The steps of a run as they arrive, thinned to a bounded number.
class StepTrack {
 public:
  // Adds a step; a step up to the last one changes nothing.
  void add(TimeNs at, int64_t step);
  std::span<const StepTime> points() const { return points_; }

 private:
  std::vector<StepTime> points_;
  uint64_t every_ = 1, seen_ = 0;
};

}  // namespace culprit::app
