// Order statistics that one culprit, or half of all, cannot move. Pure.
#pragma once

#include <algorithm>
#include <cmath>
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

// The lower median and the standard deviation around it, by the median absolute deviation. 0 of none.
template <class Number>
struct Spread {
  Number middle = 0;
  double sigma = 0;
};

template <class Number>
Spread<Number> spread_around(std::vector<Number> values) {
  const Number middle = lower_median(values);
  for (Number& v : values) v = std::abs(v - middle);
  return {middle, kMadToSigma * lower_median(values)};
}

}  // namespace culprit::comm
