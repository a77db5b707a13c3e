#include "core/detect/logs/contrast.h"

#include <algorithm>
#include <cmath>

namespace culprit::detect {
namespace {

// The Anscombe transform (1948): Poisson-like counts get a spread of 1 whatever their mean.
double stable(double count) { return 2 * std::sqrt(count + 0.375); }

double nth(std::vector<double> values, size_t n) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(n), values.end());
  return values[n];
}

// The median of `values` together with `absent` copies of `none`, which is smaller than each value.
double median(const std::vector<double>& values, size_t absent, double none) {
  const size_t middle = (values.size() + absent) / 2;
  return middle < absent ? none : nth(values, middle - absent);
}

}  // namespace

Contrast contrast(const std::vector<UnitCount>& counts, const std::vector<double>& exposure) {
  const size_t absent = exposure.size() - counts.size();
  const double none = stable(0);
  std::vector<double> y;
  for (const UnitCount& c : counts) y.push_back(stable(static_cast<double>(c.count) / exposure[c.unit]));
  const double middle = median(y, absent, none);
  std::vector<double> away;
  for (const double v : y) away.push_back(std::abs(v - middle));
  // If most units wrote no line, zero lines are the median, and their distance is 0. Else units without a
  // line are the minority.
  double spread = 0;
  if (middle == none) {
    spread = median(away, absent, 0);
  } else {
    away.insert(away.end(), absent, std::abs(none - middle));
    spread = nth(away, away.size() / 2);
  }
  spread = std::max(1.0, 1.4826 * spread);
  Contrast out;
  out.absent = (none - middle) / spread;
  out.top = absent > 0 ? out.absent : -1e300;
  for (size_t i = 0; i < y.size(); ++i) {
    out.z.push_back((y[i] - middle) / spread);
    if (out.z[i] > out.top) out.top = out.z[i], out.top_unit = counts[i].unit;
  }
  return out;
}

double chance_of(size_t values) { return std::sqrt(2 * std::log(static_cast<double>(values + 1))); }

}  // namespace culprit::detect
