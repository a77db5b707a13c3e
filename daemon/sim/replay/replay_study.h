// Replays of jobs with known hosts at fault: what the posterior of core/replay finds, next to ByteRobust's
// intersection of the failing groups. The same seed gives the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/replay/posterior.h"

namespace culprit::sim {

struct ReplayCase {
  uint32_t hosts = 64;
  uint32_t size = 0;  // of a group; 0: that of replay::plan_of()
  uint32_t faults = 1;
  double shows = 1;  // probability that a run shows a fault
};

struct ReplayStudy {
  std::vector<ReplayCase> cases;
  uint32_t trials = 100;
  uint64_t seed = 1;
  uint32_t rounds_most = 60;
  double stray = 0.01;  // of failures that no host causes, and as the posterior assumes
  double assumed = 0;   // shows that the posterior assumes; 0: that of the case
};

// Sums over the trials. A round is the runs that go on at the same time.
struct ReplayOutcome {
  uint32_t found = 0;     // all hosts at fault are held, and no other
  uint32_t held_all = 0;  // all hosts at fault are held, with innocent ones
  uint32_t missed = 0;    // a host at fault is not held, and no innocent one is
  uint32_t wrong = 0;     // a host at fault is not held, and an innocent one is
  uint64_t rounds = 0;
  uint32_t rounds_p90 = 0, rounds_max = 0;
  uint64_t rounds_first = 0;    // until the first host is named with 95 %
  uint32_t first_wrong = 0;     // that host was innocent
  uint64_t runs = 0;            // of groups
  uint64_t innocent = 0;        // innocent hosts held at the end
  uint64_t innocent_first = 0;  // after the first two rounds
};

struct ReplayRow {
  ReplayCase of;
  uint32_t size = 0;
  ReplayOutcome intersection;  // two phases, once
  ReplayOutcome repeated;      // both phases repeated until a fault was seen with 95 %
  ReplayOutcome posterior;
};

// The hosts of 16, 64, 256 and 1,024, one and two at fault, shown always and in 30 % of the runs.
std::vector<ReplayCase> replay_cases();
// Fails for a case that no plan has.
Result<std::vector<ReplayRow>> run_replay_study(const ReplayStudy& study);

}  // namespace culprit::sim
