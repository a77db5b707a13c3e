// Since when a peer has acknowledged nothing although something waits for it. What waits now need not have
// waited when the acknowledgement last moved: an agent may be idle for hours and write then.
//
// A value; time is an argument. It knows what look() is told, so it is as old as the looks are apart.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace culprit::app {

class WaitingSince {
 public:
  // Numbers of the last frame that was written, and of the last that was acknowledged.
  void look(uint64_t written, uint64_t acknowledged, TimeNs now) {
    if (written <= acknowledged)
      since_ns_ = kNoTime;
    else if (since_ns_ == kNoTime || acknowledged != acknowledged_)
      since_ns_ = now;
    acknowledged_ = acknowledged;
  }
  TimeNs since_ns() const { return since_ns_; }  // kNoTime: nothing waits

 private:
  uint64_t acknowledged_ = 0;
  TimeNs since_ns_ = kNoTime;
};

}  // namespace culprit::app
