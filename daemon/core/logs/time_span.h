// The first and last time of lines. Pure.
#pragma once

#include "base/time.h"

namespace culprit::logs {

// Extends first..last to `time`; kNoTime changes nothing.
inline void widen(TimeNs& first, TimeNs& last, TimeNs time) {
  if (time == kNoTime) return;
  if (first == kNoTime || time < first) first = time;
  if (last == kNoTime || time > last) last = time;
}

}  // namespace culprit::logs
