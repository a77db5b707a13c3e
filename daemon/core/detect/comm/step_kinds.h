// Kinds of steps: usual ones, and those in which all ranks do more than usual (a checkpoint, an evaluation).
// Plain values, made from the results of steps. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/detect/comm/result.h"

namespace culprit::comm {

struct StepKinds {
  double usual_ms = 0;          // median length of a step
  std::vector<bool> special;    // by step: the median rank works much longer than usual
  std::vector<double> work_ms;  // by step: additional work of the median rank

  // Whether the step is longer mainly because all ranks work longer.
  bool is_of_all(const std::deque<StepResult>& steps, uint32_t step) const;
  // Whether the step exceeds the usual length by about `longer_ms`, and not because all ranks work longer.
  bool is_alike(const std::deque<StepResult>& steps, uint32_t step, double longer_ms) const;
};

StepKinds kinds_of_steps(const std::deque<StepResult>& steps);

}  // namespace culprit::comm
