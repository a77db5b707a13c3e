// The member "scheduler" of a daemon's report (docs/formats.md, section 7) as a line for people. Pure.
#pragma once

#include <string>

#include "cli/remote.h"

namespace culprit::cli {

// "Slurm: job 77 FAILED, exit code 3, NonZeroExitCode; attempt 2, on n[1-4]"; empty: the report has none.
std::string scheduler_text(const Json& report);

}  // namespace culprit::cli
