// Losses and gradient norms in a job's logs that became NaN or infinite and stay so: the first iteration,
// which number was first, and what preceded it. Recovered values are no fault: the search for a loss scale
// overflows, and one bad step is skipped. Pure.
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
