// The pace of a job: whether its iterations took longer from some point on until its end. Shows a slowdown in
// logs without any message of trouble. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/logs/iterations.h"

namespace culprit::detect {

struct SlowerPace {
  TimeNs from_ns = kNoTime;            // when the slower part began
  int64_t iteration = -1;              // the last one at the old pace
  TimeNs before_ns = 0, after_ns = 0;  // mean of a step
  double factor() const { return static_cast<double>(after_ns) / static_cast<double>(before_ns); }
};

// `track`: the job's progress, ascending. Nothing where the pace is the same throughout, where it came back,
// or where there are too few points to tell.
std::optional<SlowerPace> find_slower_pace(const std::vector<logs::ProgressPoint>& track);

}  // namespace culprit::detect
