// Order statistics that one culprit, or half of all, cannot move. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace culprit::comm {

// The value below which the share `q` of all lie; `values` is reordered. 0 of none.
template <class Number>
Number quantile(std::vector<Number>& values, double q) {
  if (values.empty()) return 0;
  const auto k = static_cast<size_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(k), values.end());
  return values[k];
}

// Of two halves that differ, the lower one: being slow is what needs an explanation.
template <class Number>
Number lower_median(std::vector<Number>& values) {
  return quantile(values, 0.5);
}

// A normal distribution's standard deviation by its median absolute deviation.
constexpr double kMadToSigma = 1.4826;

}  // namespace culprit::comm
