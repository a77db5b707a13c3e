// Hosts of which nothing more is heard though they may go on: the agent that reads them is away. What their
// silence would say against them is taken back. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/report.h"

namespace culprit::detect {

using Unheard = std::set<std::string>;  // names of hosts, as the job's logs have them

// Removes such hosts from findings that rest on what was not seen of them: missing lines, operations that
// were never entered. What their own lines say counts.
void leave_out(const Unheard& unheard, std::vector<Finding>& findings);
void leave_out(const Unheard& unheard, Hang& hang);

}  // namespace culprit::detect
