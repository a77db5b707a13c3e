// The runs of a replay that say most about what is still open. Pure; any thread. Deterministic.
#pragma once

#include <vector>

#include "core/replay/plan.h"
#include "core/replay/posterior.h"

namespace culprit::replay {

// Groups of Plan::size hosts without a common host: they can run at once.
struct Round {
  std::vector<HostSet> groups;
  double bits = 0;  // expected information about the hypotheses of the summary
};

// The best of some divisions of the hosts: both phases, suspects dealt out to all groups, and random ones.
// Groups whose result is nearly certain, or follows from the others, are left out. `summary`: with its top
// hypotheses.
Round next_round(const Plan& plan, const Summary& summary, const Odds& odds);

// Mutual information in bits between the groups' results and the top hypotheses.
double information(const std::vector<HostSet>& groups, const Plan& plan, const Summary& summary,
                   const Odds& odds);

}  // namespace culprit::replay
