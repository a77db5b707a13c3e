// Hosts whose daemon is disconnected: they may still work although the collector receives nothing. This
// removes findings that rest on their silence. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/report.h"

namespace culprit::detect {

using Unheard = std::set<std::string>;  // names of hosts as in the job's logs

// Removes such hosts from findings that rest on missing lines or on operations never entered. Findings from
// lines of these hosts stay.
void leave_out(const Unheard& unheard, std::vector<Finding>& findings);
void leave_out(const Unheard& unheard, Hang& hang);

}  // namespace culprit::detect
