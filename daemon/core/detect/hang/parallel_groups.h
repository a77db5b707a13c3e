// The members of process groups that a source does not list, from the parallel layout of the job: a group
// whose ranks all have the numbers in it that an axis of the layout gives them is a group of this axis. Pure.
#pragma once

#include <vector>

#include "core/detect/hang/observation.h"
#include "model/topology.h"

namespace culprit::hang {

// Fills `members`, and the key of groups that have none. A group that fits several axes stays as it is.
void complete_groups(const JobFile& job, std::vector<Observation>& observations);

}  // namespace culprit::hang
