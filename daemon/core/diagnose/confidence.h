// How sure a diagnosis by rules is: the measured share of right answers for its kind of evidence. Pure.
#pragma once

#include <span>

#include "model/finding.h"

namespace culprit::diagnose {

// Of one rule that fired, by its kind.
double confidence_of_rule(const Finding& finding);

// Of the best fault, by what the other faults of the job say. Findings that come from no rule keep theirs.
double confidence_beside(const Finding& best, std::span<const Finding* const> faults);

}  // namespace culprit::diagnose
