// Clocks of a process that waits for others. Steady time; one thread.
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/time.h"

namespace culprit::cli {

// Remembers when something was first seen.
class Since {
 public:
  // Time since `is` became true without a break; kNoTime: it is false.
  TimeNs age(bool is, TimeNs now) {
    if (!is) return at_ = kNoTime;
    if (at_ == kNoTime) at_ = now;
    return now - at_;
  }

 private:
  TimeNs at_ = kNoTime;
};

// When a line about a wait is due: after 10 s, 30 s later, and more rarely as time passes.
class WaitLines {
 public:
  bool is_due() {
    const TimeNs now = steady_now();
    if (now < next_) return false;
    next_ = now + every_;
    every_ = std::min(2 * every_, kLongest);
    return true;
  }

 private:
  static constexpr TimeNs kFirst = 10 * kNsPerSecond, kNext = 30 * kNsPerSecond;
  static constexpr TimeNs kLongest = 1800 * kNsPerSecond;
  TimeNs next_ = steady_now() + kFirst, every_ = kNext;
};

}  // namespace culprit::cli
