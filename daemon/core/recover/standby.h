// How many idle hosts a job needs so that it rarely waits for one (ByteRobust: the P99 of the hosts that fail
// within the time until a new one is there). Pure; any thread.
#pragma once

#include <cstdint>

namespace culprit::recover {

// Smallest k with P(X <= k) >= quantile, X binomial of `hosts` and `share`. share within 0 .. 1.
uint32_t binomial_quantile(uint32_t hosts, double share, double quantile);
// P(X > k).
double binomial_above(uint32_t hosts, double share, uint32_t k);

// Failures per host and day. low and high: 95 % of Poisson counts, exact.
struct FailureRate {
  uint64_t failures = 0;
  double host_days = 0;
  double rate = 0, low = 0, high = 0;
};
FailureRate failure_rate(uint64_t failures, double host_days);

struct StandbyPlan {
  uint32_t hosts = 0, spares = 0;
  double out_share = 0;        // probability that a host is out at a time
  double out_mean = 0;         // hosts out at a time
  double idle_hours_day = 0;   // host hours of spares that wait
  double wait_before_day = 0;  // hours a day in which the job lacks a host, without spares
  double wait_after_day = 0;   // with them
};
// A host that fails is out for `refill_days` on average, and the job runs with all its hosts only.
StandbyPlan plan_standbys(uint32_t hosts, double rate, double refill_days, double quantile);

}  // namespace culprit::recover
