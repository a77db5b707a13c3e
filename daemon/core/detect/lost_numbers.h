// Losses and gradients in a job's logs that stopped being finite and stay so: since which iteration, what
// went first and what came before. Recovered values are no fault: a scale of the loss is found by overflows,
// and one bad step is skipped. Pure.
#pragma once

#include <optional>

#include "core/detect/analysis.h"
#include "core/detect/view.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::detect {

struct LostNumbers {
  Finding finding;
  NumericFault fault;
};

std::optional<LostNumbers> find_lost_numbers(const View& view, const Analysis& analysis);

}  // namespace culprit::detect
