// What the runs of a replay say about each host: the posterior over "no host", "the job itself", each single
// host and each pair of hosts.
//
// A run fails with probability 1 - (1 - stray) (1 - shows)^k, with k hosts at fault in its group; a fault of
// the job shows in each group alike. Before the first run: no host .05, the job .1, one host .6, two hosts
// .25, each host and each pair alike.
//
// A value; one thread. add() takes m^2 steps, summary() one for each pair of hosts.
#pragma once

#include <cstdint>
#include <vector>

#include "core/replay/plan.h"

namespace culprit::replay {

struct Odds {
  double shows = 0.95;  // probability that one run shows the fault of a host in its group
  double stray = 0.01;  // of a failure that no host causes
};
constexpr double kShowsLeast = 0.01, kShowsMost = 0.99;
constexpr double kStrayLeast = 1e-4, kStrayMost = 0.5;

// Probability that a run fails with `faults` hosts at fault in its group. Odds beyond the limits count as the
// limit.
double failing(const Odds& odds, unsigned faults);

struct Hypothesis {
  enum class Kind : unsigned char { kNoHost, kJob, kOne, kTwo };
  Kind kind = Kind::kNoHost;
  uint32_t a = 0, b = 0;  // the hosts of kOne (a) and kTwo
  double probability = 0;
};

struct Summary {
  double no_host = 0, job = 0, one = 0, two = 0;  // together 1
  std::vector<double> of_host;                    // probability that the host is at fault
  std::vector<Hypothesis> top;                    // the most probable first
  double log_evidence = 0;                        // of all runs, natural logarithm
};

class Posterior {
 public:
  Posterior(uint32_t hosts, const Odds& odds);
  void add(const HostSet& group, bool failed);
  Summary summary(size_t top) const;

 private:
  size_t index(uint32_t a, uint32_t b) const;  // a < b

  uint32_t hosts_;
  double fails_[3];
  double no_host_ = 0, job_ = 0;  // logarithms of likelihoods; those below relative to no_host_
  std::vector<double> one_;
  std::vector<double> both_;  // of a pair, in addition to those of its hosts
};

}  // namespace culprit::replay
