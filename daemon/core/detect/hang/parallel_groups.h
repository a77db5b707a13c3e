// Infers the members of process groups that a source does not list, from the job's parallel layout. A group
// belongs to an axis if each of its ranks has the group rank that the axis assigns. Pure.
#pragma once

#include <vector>

#include "core/detect/hang/observation.h"
#include "model/topology.h"

namespace culprit::hang {

// Fills `members`, and missing keys. A group that fits several axes is left unchanged.
void complete_groups(const JobFile& job, std::vector<Observation>& observations);

}  // namespace culprit::hang
