// Whether a process went on after a line that names a fault. What it only mentions stops no process: a sample
// of data, a plan, an earlier run. Pure.
#pragma once

#include "core/logs/job_log.h"

namespace culprit::diagnose {

// Whether the writer made steps after the line, or wrote it as an information. False for a kernel's line: the
// kernel goes on after any fault of a device.
bool went_on_after(const logs::JobLog& log, const logs::RuleLine& line);

// Whether an exception of the program ended its process with this line.
bool ends_by_exception(const logs::RuleLine* line);

}  // namespace culprit::diagnose
