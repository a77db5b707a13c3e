// Merges findings of several detectors about one fault, and ranks faults before slowness. Pure.
#pragma once

#include <vector>

#include "core/detect/comm/findings.h"
#include "core/detect/logs/analysis.h"
#include "core/detect/logs/lost_numbers.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::core::fuse {

// The clock detects a stop of progress. If another detector found the waiting ranks, both findings are the
// same hang.
void join_stall(std::vector<Finding>& findings);
// Joins two findings: replicas that differ since a rank left out a reduction. The program is at fault, not
// a device.
void join_left_out(comm::RankLeftOut left_out, std::vector<Finding>& findings);
// Ranks that entered another call than their peers, by the trace, and what a library's message says of that.
void join_mismatch(std::vector<Finding>& findings);
// Adds lost numbers of the logs. If metrics or a rule report them too, it is one fault.
void join_lost(detect::LostNumbers lost, detect::Analysis& analysis, Report& report);
// A crash, a hang or wrong numbers outrank a slow rank, whatever its confidence.
void put_slowness_behind(std::vector<Finding>& findings);

}  // namespace culprit::core::fuse
