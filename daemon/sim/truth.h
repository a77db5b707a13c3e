// The truth of a simulated job as JSON: the fault, its place, its onset, and its lines.
#pragma once

#include <string>

#include "sim/job.h"
#include "sim/log_job.h"

namespace culprit::sim {

// `fault` null: a healthy job.
std::string truth_json(const LogJobOptions& options, const FaultKind* fault, const FaultOutcome& outcome,
                       const Sink& sink, const Site& site, const Run& run);

}  // namespace culprit::sim
