// Clocks and pauses of the capture. Any thread.
#pragma once

#include <time.h>

#include "base/time.h"

namespace culprit::capture {

inline TimeNs time_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}
inline TimeNs mono() { return time_of(CLOCK_MONOTONIC); }
inline TimeNs wall() { return time_of(CLOCK_REALTIME); }
inline void pause_for(TimeNs ns) {
  const timespec pause{ns / kNsPerSecond, ns % kNsPerSecond};
  ::nanosleep(&pause, nullptr);
}

}  // namespace culprit::capture
