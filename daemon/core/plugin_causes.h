// Joins findings of plugins with what others found into one fault with the evidence of both. Pure.
#pragma once

#include <vector>

#include "model/finding.h"

namespace culprit::core {

// A finding of a plugin explains what a detector measured (slowness, a hang, wrong numbers) if symptom, place
// and time agree. It confirms a rule's fault of the same component, place and time. Of the warnings about one
// host that explain nothing, only the strongest keeps its weight.
void join_plugins(std::vector<Finding>& findings);

}  // namespace culprit::core
