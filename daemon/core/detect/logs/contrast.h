// Distance of each unit (host or rank) from its peers, by its line count of one template. Linear in the
// number of units that write the template. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "core/detect/logs/view.h"

namespace culprit::detect {

struct Contrast {
  double absent = 0;      // z of units without any such line
  std::vector<double> z;  // parallel to `counts`
  double top = 0;         // largest z and its unit; kNowhere: a unit without any such line
  uint32_t top_unit = kNowhere;
};

// `exposure`: per unit, the expected number of lines relative to the usual unit. `counts` ascend by unit, as
// count_by() returns them.
Contrast contrast(const std::vector<UnitCount>& counts, const std::vector<double>& exposure);

// Expected maximum of `values` standard normal values. Only a larger z is significant.
double chance_of(size_t values);

}  // namespace culprit::detect
