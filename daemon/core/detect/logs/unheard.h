// Hosts whose daemon is disconnected may still work although the collector receives nothing. This removes
// findings that depend on their silence. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/report.h"

namespace culprit::detect {

using Unheard = std::set<std::string>;  // names of hosts as in the job's logs

// Removes these hosts from findings that depend on missing lines or on operations never entered. Findings
// from lines of these hosts stay.
void leave_out(const Unheard& unheard, std::vector<Finding>& findings);
void leave_out(const Unheard& unheard, Hang& hang);

}  // namespace culprit::detect
