// When the processes of a job that does not go on are captured: at once, and again at intervals while it does
// not, since several samples tell slow from stuck. A value of one run; one thread. Time is an argument.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace culprit::app {

struct CapturePlan {
  uint32_t samples = 0;  // of one stop; 0: none
  TimeNs every_ns = 10 * kNsPerSecond;
};

class CaptureTimes {
 public:
  // The number of the capture that is due now, from 1.
  std::optional<uint32_t> due(bool stalled, const CapturePlan& plan, TimeNs now) {
    if (!stalled) {
      taken_ = 0;
      return std::nullopt;
    }
    const bool early = taken_ > 0 && now >= last_ns_ && now - last_ns_ < plan.every_ns;
    if (taken_ >= plan.samples || early) return std::nullopt;
    last_ns_ = now;
    return ++taken_;
  }

 private:
  uint32_t taken_ = 0;  // of the present stop
  TimeNs last_ns_ = kNoTime;
};

}  // namespace culprit::app
