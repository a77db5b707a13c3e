// How far units (hosts, or ranks) are from their peers in the lines of one template. Linear in the units that
// write it, however many there are. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "core/detect/view.h"

namespace culprit::detect {

struct Contrast {
  double absent = 0;      // z of the units that wrote none
  std::vector<double> z;  // beside the counts that it was made of
  double top = 0;         // largest z, and whose it is; kNowhere: of one that wrote none
  uint32_t top_unit = kNowhere;
};

// `exposure` has a number for each unit: how many lines are to be expected of it, as against the usual one.
// `counts` ascend by unit, as count_by() gives them.
Contrast contrast(const std::vector<UnitCount>& counts, const std::vector<double>& exposure);

// The largest of so many standard normal values that chance lets expect: only what is beyond it counts.
double chance_of(size_t values);

}  // namespace culprit::detect
