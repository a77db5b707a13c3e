// The pace of a job: whether iterations became slower at some point and stayed slower until the end. This
// finds a slowdown that no log message reports. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/logs/iterations.h"

namespace culprit::detect {

struct SlowerPace {
  TimeNs from_ns = kNoTime;            // start of the slower part
  int64_t iteration = -1;              // last iteration at the old pace
  TimeNs before_ns = 0, after_ns = 0;  // mean step time
  double factor() const { return static_cast<double>(after_ns) / static_cast<double>(before_ns); }
};

// `track`: the job's progress, ascending. No result if the pace is constant, if it recovered, or if there are
// too few points.
std::optional<SlowerPace> find_slower_pace(const std::vector<logs::ProgressPoint>& track);

}  // namespace culprit::detect
