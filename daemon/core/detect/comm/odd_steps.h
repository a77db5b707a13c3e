// Irregular steps that no culprit explains, and the rank, host or network part whose own excess explains each
// of them. Such a suspect is only listed: single steps are no reason to accuse. It adds up over steps with a
// decay, and chance that moves from rank to rank lists none. Works only on results of steps. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/detect/comm/announced.h"
#include "core/detect/comm/cluster.h"
#include "core/detect/comm/judge.h"
#include "core/detect/comm/result.h"
#include "core/detect/comm/step_kinds.h"

namespace culprit::comm {

// Borrowed for the call.
struct StepsSeen {
  const Cluster& cluster;
  const std::deque<StepResult>& steps;
  const StepKinds& kinds;
  const Announced* phases = nullptr;
};

struct OddSteps {
  std::vector<uint32_t> steps;  // indices, ascending
  // Of some of these steps, and of others that they cost something. A step has one at most.
  std::vector<Culprit> suspects;
};

// `explained`: by step: a culprit is named for it.
OddSteps explain_odd_steps(const StepsSeen& seen, const std::vector<bool>& explained);

}  // namespace culprit::comm
