// Times in packed columns: at or after the epoch; kNoTime: unknown.
#pragma once

#include "base/time.h"
#include "core/logs/packed.h"

namespace culprit::wire {

inline void put_time(PackedWriter& out, TimeNs time) {
  out.number(time < 0 ? 0 : static_cast<uint64_t>(time) + 1);
}

inline TimeNs get_time(PackedReader& in) {
  const uint64_t value = in.number(uint64_t{1} << 62);
  return value == 0 ? kNoTime : static_cast<TimeNs>(value - 1);
}

}  // namespace culprit::wire
