// The confidence of a diagnosis by rules: the measured share of right answers for its kind of evidence. Pure.
#pragma once

#include <span>

#include "model/finding.h"

namespace culprit::diagnose {

// For one rule that fired, by its kind.
double confidence_of_rule(const Finding& finding);

// For the best fault, adjusted by the job's other faults. Findings without a rule keep their confidence.
// `watched`: its parent saw the program end with a failure, so that its only exception is why.
double confidence_among(const Finding& best, std::span<const Finding* const> faults, bool watched = false);

}  // namespace culprit::diagnose
