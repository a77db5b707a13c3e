// The phases of a job, for a timeline: started, trained, evaluated, saved a checkpoint, restarted, or
// stalled. A gap between two progress lines much longer than usual is not training; the lines in the gap give
// its phase. If none does, and such lines may have been dropped, the gap counts as training. Pure.
#pragma once

#include <vector>

#include "core/detect/logs/analysis.h"
#include "core/logs/job_log.h"
#include "model/report.h"

namespace culprit::diagnose {

constexpr size_t kPhasesMax = 300;

// `hang_ns`: start of the hang; kNoTime: no known hang. Empty without timed progress. Beyond kPhasesMax
// phases, the shortest merge into the training around them.
std::vector<JobPhase> phases_of(const logs::JobLog& log, const detect::RunEnd& outcome, TimeNs hang_ns);

}  // namespace culprit::diagnose
