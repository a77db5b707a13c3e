// Irregular steps that no culprit explains, and the rank, host or network part whose own excess explains each
// of them. Such a suspect is only listed, because single steps justify no accusation. Scores of a suspect add
// up over steps with a decay, so random events on changing ranks list no suspect. Works only on results of
// steps. Pure.
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
  // Suspects of some of these steps, and of other steps in which they have a cost. At most one per step.
  std::vector<Culprit> suspects;
};

// `explained`: by step, whether a culprit is named for the step.
OddSteps explain_odd_steps(const StepsSeen& seen, const std::vector<bool>& explained);

}  // namespace culprit::comm
