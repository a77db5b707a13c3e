// Common options of the verbs of `culprit simulate` that generate a job.
#pragma once

#include <vector>

#include "cli/command.h"
#include "cli/verbs.h"
#include "sim/log_job.h"

namespace culprit::cli {

std::vector<Option*> add_job_options(Command& verb, sim::LogJobOptions& job);
void add_simulate_play(Command& simulate, Run& run);

}  // namespace culprit::cli
