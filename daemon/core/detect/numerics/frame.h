// Values of all ranks in one step, by column (a metric) and slot (a rank). Plain values; one thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/time.h"

namespace culprit::numerics {

// A missing value: a NaN that no arithmetic produces, so a reported NaN differs from it.
constexpr uint64_t kAbsentBits = 0x7ff8'dead'0000'0001;
inline const double kAbsent = std::bit_cast<double>(kAbsentBits);
inline bool is_reported(double value) { return std::bit_cast<uint64_t>(value) != kAbsentBits; }

// Gives equal numbers equal bits: one NaN, one zero.
inline double normal_form(double value) {
  if (std::isnan(value)) return std::numeric_limits<double>::quiet_NaN();
  return value == 0 ? 0.0 : value;
}

struct Frame {
  int64_t step = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  std::vector<std::vector<double>>
      values;  // by column and slot; a column may have fewer entries than there are slots.
  std::vector<std::vector<uint64_t>> digests;  // by digest name and slot
  std::vector<std::vector<bool>> digest_reported;
  std::vector<bool> seen;  // by slot
  uint32_t ranks = 0;      // ranks seen

  double value(uint32_t column, uint32_t slot) const {
    if (column >= values.size() || slot >= values[column].size()) return kAbsent;
    return values[column][slot];
  }
  bool is_seen(uint32_t slot) const { return slot < seen.size() && seen[slot]; }
};

}  // namespace culprit::numerics
