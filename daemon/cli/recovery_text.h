// What the controller does and remembers, of several verbs. Pure functions of the daemon's answers.
#pragma once

#include <string>

#include "cli/remote.h"

namespace culprit::cli {

// GET /v1/recovery: mode, stages, trouble, questions, jobs.
std::string recovery_overview_text(const Json& json, const Zone& zone);
// GET /v1/jobs/JOB/decision: why a job is where it is.
std::string decision_text(const Json& json, const Zone& zone);
// GET /v1/recovery/machines. `now`: for "third time in 7 days".
std::string machines_text(const Json& json, const Zone& zone, TimeNs now);
// GET /v1/recovery/cost: sums, time lost by cause, times to detect, to decide and to run again.
std::string cost_text(const Json& json);
// GET /v1/recovery/cost?jobs=: a row for each job.
std::string job_costs_text(const Json& json, const Zone& zone);

}  // namespace culprit::cli
