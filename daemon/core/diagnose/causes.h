// Ranks faults by causality: a cascade never precedes a root, and a root never precedes an earlier root of a
// lower layer that explains it. Pure.
#pragma once

#include <vector>

#include "model/finding.h"

namespace culprit::diagnose {

// The faults among the findings, the best explanation first.
std::vector<const Finding*> order_faults(const std::vector<Finding>& findings);

// Whether `cause` explains `other`: `cause` is not later, and its component is in a lower layer.
bool explains(const Finding& cause, const Finding& other);

}  // namespace culprit::diagnose
