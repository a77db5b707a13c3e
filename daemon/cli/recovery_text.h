// Tables of what the controller remembers, of several verbs. Pure functions of the daemon's answers.
#pragma once

#include <string>

#include "cli/remote.h"

namespace culprit::cli {

// GET /v1/recovery/machines. `now`: for "third time in 7 days".
std::string machines_text(const Json& json, const Zone& zone, TimeNs now);
// GET /v1/recovery/cost: sums, time lost by cause, times to detect, to decide and to run again.
std::string cost_text(const Json& json);
// GET /v1/recovery/cost?jobs=: a row for each job.
std::string job_costs_text(const Json& json, const Zone& zone);

}  // namespace culprit::cli
