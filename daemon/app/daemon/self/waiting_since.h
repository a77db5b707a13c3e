// Start of the wait for a peer's acknowledgement while frames are unacknowledged. The frames may be younger
// than the last acknowledgement: an agent may write after hours without data.
//
// A value; time is an argument. The precision is the interval between calls of look().
#pragma once

#include <cstdint>

#include "base/time.h"

namespace culprit::app {

class WaitingSince {
 public:
  // `written`: number of the last written frame; `acknowledged`: of the last acknowledged one.
  void look(uint64_t written, uint64_t acknowledged, TimeNs now) {
    if (written <= acknowledged)
      since_ns_ = kNoTime;
    else if (since_ns_ == kNoTime || acknowledged != acknowledged_)
      since_ns_ = now;
    acknowledged_ = acknowledged;
  }
  TimeNs since_ns() const { return since_ns_; }  // kNoTime: no frame waits

 private:
  uint64_t acknowledged_ = 0;
  TimeNs since_ns_ = kNoTime;
};

}  // namespace culprit::app
