// Losses and gradient norms in a job's logs that became NaN or infinite and stayed so. The result has the
// first iteration, the first affected number and the preceding events. Recovered values are no fault: the
// search for a loss scale overflows, and one bad step is skipped. Pure.
#pragma once

#include <optional>

#include "core/detect/logs/analysis.h"
#include "core/detect/logs/view.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::detect {

struct LostNumbers {
  Finding finding;
  NumericFault fault;
};

std::optional<LostNumbers> find_lost_numbers(const View& view, const Analysis& analysis);

}  // namespace culprit::detect
