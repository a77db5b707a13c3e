// Compares the speed of two runs from their progress: points (time, iteration). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/time.h"

namespace culprit::cli {

using ProgressPoints = std::vector<std::pair<TimeNs, int64_t>>;

// Step times of a run. A block has a fixed number of intervals; the blocks' medians show the run's noise.
struct Pace {
  std::vector<double> step_ms;  // step times between points, in order of time
  std::vector<TimeNs> at_ns;    // end of each interval
  std::vector<int64_t> iteration;
  std::vector<double> blocks;  // medians
  double median_ms = 0;
  double noise = 0;  // spread of the blocks' medians, as a share of the median
};
Pace pace_of(const ProgressPoints& progress);

struct SpeedChange {
  double ratio = 1;     // step time after / before
  double bound = 0;     // deviations of the ratio from 1 up to this bound may be noise
  double effect = 0.5;  // share of pairs of blocks in which the later one is slower
  bool different = false;
};
// nullopt: a run has too few points.
std::optional<SpeedChange> compare(const Pace& before, const Pace& after);

struct ChangePoint {
  TimeNs at_ns = kNoTime;
  int64_t iteration = 0;
  SpeedChange change;
};
// The point that best divides a run into two speeds; nullopt: the difference is within the noise.
std::optional<ChangePoint> change_point(const Pace& pace);

}  // namespace culprit::cli
