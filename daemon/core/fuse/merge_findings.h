// Merges findings of several detectors about one fault, and ranks faults before slowness. Pure.
#pragma once

#include <vector>

#include "core/detect/comm/findings.h"
#include "core/detect/logs/analysis.h"
#include "core/detect/logs/lost_numbers.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::core::fuse {

// The clock detects that progress stopped. A finding of another detector with the waiting ranks is the same
// hang.
void join_stall(std::vector<Finding>& findings);
// Joins two findings: replicas that differ because a rank left out a reduction. The fault is the program's,
// not a device's.
void join_left_out(comm::RankLeftOut left_out, std::vector<Finding>& findings);
// Joins a trace that shows ranks in another call than their peers with a library message about the same
// mismatch.
void join_mismatch(std::vector<Finding>& findings);
// Adds NaN or infinite numbers found in the logs. If metrics or a rule report them too, the fault is the
// same.
void join_lost(detect::LostNumbers lost, detect::Analysis& analysis, Report& report);
// A crash, a hang or wrong numbers outrank a slow rank, whatever its confidence.
void put_slowness_behind(std::vector<Finding>& findings);

}  // namespace culprit::core::fuse
