#include "core/recover/standby.h"

#include <algorithm>
#include <cmath>

namespace culprit::recover {
namespace {

constexpr double kTail = 0.025;  // on each side of an interval
constexpr int kHalvings = 200;

double term(uint32_t n, double p, uint32_t k) {
  if (p <= 0) return k == 0 ? 1 : 0;
  if (p >= 1) return k == n ? 1 : 0;
  const double ways =
      std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(static_cast<double>(n) - k + 1.0);
  return std::exp(ways + k * std::log(p) + (static_cast<double>(n) - k) * std::log1p(-p));
}

// P(X <= k) of a Poisson number.
double poisson_at_most(uint64_t k, double mean) {
  if (mean <= 0) return 1;
  double sum = 0;
  for (uint64_t i = 0; i <= k; ++i) {
    const auto n = static_cast<double>(i);
    sum += std::exp(n * std::log(mean) - mean - std::lgamma(n + 1));
  }
  return std::min(1.0, sum);
}

// The mean at which P(X <= k) falls to `share`.
double mean_where(uint64_t k, double share) {
  double low = 0, high = 10 + 2 * static_cast<double>(k) + 10 * std::sqrt(static_cast<double>(k));
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (poisson_at_most(k, middle) > share ? low : high) = middle;
  }
  return low;
}

}  // namespace

uint32_t binomial_quantile(uint32_t hosts, double share, double quantile) {
  double sum = 0;
  for (uint32_t k = 0; k < hosts; ++k)
    if (sum += term(hosts, share, k); sum >= quantile) return k;
  return hosts;
}

double binomial_above(uint32_t hosts, double share, uint32_t k) {
  double sum = 0;
  for (uint32_t i = 0; i <= std::min(k, hosts); ++i) sum += term(hosts, share, i);
  return std::max(0.0, 1 - sum);
}

FailureRate failure_rate(uint64_t failures, double host_days) {
  FailureRate out{failures, host_days, 0, 0, 0};
  if (!(host_days > 0)) return out;
  out.rate = static_cast<double>(failures) / host_days;
  out.low = failures == 0 ? 0 : mean_where(failures - 1, 1 - kTail) / host_days;
  out.high = mean_where(failures, kTail) / host_days;
  return out;
}

StandbyPlan plan_standbys(uint32_t hosts, double rate, double refill_days, double quantile) {
  constexpr double kHoursOfDay = 24;
  StandbyPlan out;
  out.hosts = hosts;
  const double load = std::max(0.0, rate * refill_days);
  out.out_share = load / (1 + load);
  out.out_mean = out.out_share * hosts;
  out.spares = binomial_quantile(hosts, out.out_share, quantile);
  double used = 0, at_most = 0;  // used: spares that stand in, on average
  for (uint32_t k = 0; k < out.spares; ++k) {
    at_most += term(hosts, out.out_share, k);
    used += std::max(0.0, 1 - at_most);
  }
  out.idle_hours_day = kHoursOfDay * (out.spares - used);
  out.wait_before_day = kHoursOfDay * binomial_above(hosts, out.out_share, 0);
  out.wait_after_day = kHoursOfDay * binomial_above(hosts, out.out_share, out.spares);
  return out;
}

}  // namespace culprit::recover
