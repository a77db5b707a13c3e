// The steps that the training's own numbers show, by their times: what logs without progress lines do not
// tell. Bounded. One thread; pure.
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
  // The first row of each step counts. Steps that go back begin a new series, as after a restart.
  void add(int64_t step, TimeNs at);
  // How many kept steps ended after this time.
  size_t after(TimeNs at) const;
  // Whether steps ended until this time, or nearly so.
  bool go_on_until(TimeNs at) const;
  std::optional<detect::SlowerPace> slower_pace() const { return detect::find_slower_pace(track_); }
  TimeNs last_ns() const { return track_.empty() ? kNoTime : track_.back().time_ns; }

 private:
  std::vector<logs::ProgressPoint> track_;  // ascending
  int64_t every_ = 1;                       // of long jobs only each of so many steps is kept
};

// That the job became slower, without weight and without a place: a fault only where a machine says why.
Finding pace_finding(const detect::SlowerPace& pace, TimeNs until);

// Moves lines of a kernel to `witnesses` that the job went on after: several steps ended later. Lines without
// a time stopped nothing if the steps go on until `log_end`.
void drop_outlived(const MeasuredSteps& steps, TimeNs log_end, std::vector<Finding>& signs,
                   std::vector<Finding>& witnesses);

}  // namespace culprit::core
