// The machine's clocks. Not for core, whose results depend on its inputs alone. Any thread.
#pragma once

#include <time.h>

#include <chrono>

#include "base/time.h"

namespace culprit {

// Nanoseconds since the epoch. A person or NTP may set it.
inline TimeNs wall_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// For spans and time limits: never set.
inline TimeNs steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// As steady_now(), and counts while the machine sleeps: what another machine may do meanwhile depends on it.
inline TimeNs boot_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<TimeNs>(now.tv_sec) * kNsPerSecond + now.tv_nsec;
}

}  // namespace culprit
