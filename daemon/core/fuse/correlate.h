// Joins findings about one fault: a measured symptom (slow rank or link, hang, wrong numbers) and the
// machine's report of the same place and time (plugin counters, kernel lines). The joined fault has the
// evidence of both. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "model/finding.h"

namespace culprit::core::fuse {

// `witnesses`: rule findings that are no fault by themselves (warnings, survived trouble); dropped if they
// explain nothing. `stopped_ns`: when the job's progress ended; kNoTime if unknown. The table of combinations
// is in correlate.cc and docs/detectors.md. A finding joins by its declared kind (component, symptom,
// severity), never by name. A user's claim joins nothing. Among warnings about one host that explain nothing,
// only the strongest keeps its weight.
void join_causes(std::vector<Finding>& findings, std::vector<Finding> witnesses = {},
                 TimeNs stopped_ns = kNoTime);

// The sources of a diagnosis joined from two findings, in this order: "comm", "plugin:NAME", "rule:ID".
std::vector<std::string> joined_names(const Finding& effect, const Finding& cause);

}  // namespace culprit::core::fuse
