// Joins findings of every kind that are about one fault: what was measured (a slow rank or link, a hang,
// wrong numbers) with what the machine reports of the same place at the same time (counters of plugins,
// lines of the kernel). One fault remains, with the evidence of all. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "model/finding.h"

namespace culprit::core::fuse {

// `witnesses`: what rules read that is no fault by itself: a warning, or trouble that the job survived. One
// that explains nothing is dropped. `stopped_ns`: when the job's progress ended, kNoTime if not known.
//
// The table of combinations is in correlate.cc and docs/detectors.md. A finding joins by the declaration of
// its kind (component, symptom, severity), never by its name. A claim of a user joins nothing. Of the
// warnings about one host that explain nothing, only the strongest keeps its weight.
void join_causes(std::vector<Finding>& findings, std::vector<Finding> witnesses = {},
                 TimeNs stopped_ns = kNoTime);

// Who agrees in a diagnosis that is joined of two findings, in this order: "comm", "plugin:NAME", "rule:ID".
std::vector<std::string> joined_names(const Finding& effect, const Finding& cause);

}  // namespace culprit::core::fuse
