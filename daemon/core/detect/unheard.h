// Hosts whose agent is away: they may still work although nothing arrives from them. Findings that rest on
// their silence are withdrawn. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/report.h"

namespace culprit::detect {

using Unheard = std::set<std::string>;  // names of hosts, as the job's logs have them

// Removes such hosts from findings that rest on missing lines or on operations that were never entered.
// Findings by their own lines stay.
void leave_out(const Unheard& unheard, std::vector<Finding>& findings);
void leave_out(const Unheard& unheard, Hang& hang);

}  // namespace culprit::detect
