// What a job did when, for a timeline: it started, trained, evaluated, saved a checkpoint, was restarted,
// or stalled. A time between two progress lines that is much longer than its steps usually take is no
// training; the lines written meanwhile name it. Where nothing names it, and lines that would may have been
// dropped, it stays training. Pure.
#pragma once

#include <vector>

#include "core/detect/logs/analysis.h"
#include "core/logs/job_log.h"
#include "model/report.h"

namespace culprit::diagnose {

constexpr size_t kPhasesMax = 300;

// `hang_ns`: since when the job hangs; kNoTime: it does not, as far as known. Empty without timed progress.
// Beyond kPhasesMax phases the shortest are left to the training around them.
std::vector<JobPhase> phases_of(const logs::JobLog& log, const detect::RunEnd& outcome, TimeNs hang_ns);

}  // namespace culprit::diagnose
