// Order statistics that up to half of the values cannot distort. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace culprit::comm {

// The value below which the share `q` of all values lies. Reorders `values`; 0 if empty.
template <class Number>
Number quantile(std::vector<Number>& values, double q) {
  if (values.empty()) return 0;
  const auto k = static_cast<size_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(k), values.end());
  return values[k];
}

// For an even count, the lower middle value, so that only slowness needs an explanation.
template <class Number>
Number lower_median(std::vector<Number>& values) {
  return quantile(values, 0.5);
}

// Factor from the median absolute deviation to the standard deviation of a normal distribution.
constexpr double kMadToSigma = 1.4826;

// Lower median, and standard deviation from the median absolute deviation. 0 if empty.
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
