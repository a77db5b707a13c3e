// Random times of the simulated cluster, by integers alone (docs/decisions/simulation.md).
#pragma once

#include <cstdint>

#include "base/time.h"
#include "sim/random.h"

namespace culprit::sim {

// Exponential with this mean, by comparisons of uniform numbers (von Neumann), so without a logarithm.
inline TimeNs exponential(Random& random, TimeNs mean_ns) {
  for (uint64_t whole = 0;; ++whole) {
    const uint64_t first = random.next() >> 32;
    uint64_t last = first, run = 1;
    for (uint64_t u = random.next() >> 32; u < last; u = random.next() >> 32) last = u, ++run;
    if (run % 2 == 0) continue;
    const auto parts = static_cast<unsigned __int128>(mean_ns) * (whole << 32 | first);
    return static_cast<TimeNs>(parts >> 32);
  }
}

inline bool happens_ppm(Random& random, int64_t ppm) {
  return static_cast<int64_t>(random.below(1'000'000)) < ppm;
}

}  // namespace culprit::sim
