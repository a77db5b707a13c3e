// The clocks of this process, to measure plugin calls in the process that runs them. Elsewhere time is an
// argument. Any thread.
#pragma once

#include <ctime>

#include "base/time.h"

namespace culprit::plughost {

inline TimeNs clock_ns(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}
inline TimeNs monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

}  // namespace culprit::plughost
