// The confidence of a diagnosis by rules: the measured accuracy for its kind of evidence. Pure.
#pragma once

#include <span>

#include "model/finding.h"

namespace culprit::diagnose {

// For one matched rule, by its kind.
double confidence_of_rule(const Finding& finding);

// For the best fault, adjusted by the job's other faults. Findings without a rule keep their confidence.
// `watched`: the parent process saw the program fail, so its only exception is the reason.
double confidence_among(const Finding& best, std::span<const Finding* const> faults, bool watched = false);

}  // namespace culprit::diagnose
