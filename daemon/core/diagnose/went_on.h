// Whether a process continued after a line that names a fault. A fault that is only mentioned stops no
// process: a data sample, a plan, an earlier run. Pure.
#pragma once

#include "core/logs/job_log.h"

namespace culprit::diagnose {

// Whether levels distinguish the job's lines: a log service may give all of them level info.
bool has_levels(const logs::JobLog& log);

// Whether the writer made steps after the line, or wrote the line at level info. `levels`: see has_levels().
// False for a kernel line: the kernel continues after any device fault.
bool went_on_after(const logs::JobLog& log, const logs::RuleLine& line, bool levels);

// Whether a program exception with this line ended its process.
bool ends_by_exception(const logs::RuleLine* line);

}  // namespace culprit::diagnose
