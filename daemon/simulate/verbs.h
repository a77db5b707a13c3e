// The verbs of `culprit-simulate`, which `culprit simulate` starts: jobs with a known fault.
#pragma once

#include <vector>

#include "cli/command.h"
#include "cli/verbs.h"
#include "sim/log_job.h"

namespace culprit::cli {

// The verb `simulate` with its own verbs.
void add_simulations(Command& app, Run& run);
void add_simulate_play(Command& simulate, Run& run);
void add_simulate_cluster(Command& simulate, Run& run);
void add_simulate_replay(Command& simulate, Run& run);
void add_simulate_sweep(Command& simulate, Run& run);
// Common options of the verbs that generate a job.
std::vector<Option*> add_job_options(Command& verb, sim::LogJobOptions& job);

}  // namespace culprit::cli
