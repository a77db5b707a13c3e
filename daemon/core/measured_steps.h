// The times of steps from the training's own metrics, for logs without progress lines. Bounded. One thread;
// pure.
#pragma once

#include <optional>
#include <vector>

#include "base/time.h"
#include "core/detect/logs/pace.h"
#include "core/logs/iterations.h"
#include "model/finding.h"

namespace culprit::core {

class MeasuredSteps {
 public:
  // The first row of each step counts. A step back begins a new series, as after a restart.
  void add(int64_t step, TimeNs at);
  // Number of stored steps that ended after this time.
  size_t after(TimeNs at) const;
  // Whether steps ended at or shortly before this time.
  bool go_on_until(TimeNs at) const;
  std::optional<detect::SlowerPace> slower_pace() const { return detect::find_slower_pace(track_); }
  TimeNs last_ns() const { return track_.empty() ? kNoTime : track_.back().time_ns; }

 private:
  std::vector<logs::ProgressPoint> track_;  // ascending
  int64_t every_ = 1;                       // in long jobs, only every n-th step is stored
};

// A finding that the job became slower, without weight and place: a fault only if a machine reports the
// reason.
Finding pace_finding(const detect::SlowerPace& pace, TimeNs until);

// Moves kernel findings that the job survived to `witnesses`: several steps ended later. Untimed lines
// stopped nothing if steps continue until `log_end`.
void drop_outlived(const MeasuredSteps& steps, TimeNs log_end, std::vector<Finding>& signs,
                   std::vector<Finding>& witnesses);

}  // namespace culprit::core
