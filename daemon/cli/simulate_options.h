// What the verbs of `culprit simulate` share that make a job of their own.
#pragma once

#include <vector>

#include "cli/command.h"
#include "cli/verbs.h"
#include "sim/log_job.h"

namespace culprit::cli {

std::vector<Option*> add_job_options(Command& verb, sim::LogJobOptions& job);
void add_simulate_play(Command& simulate, Run& run);

}  // namespace culprit::cli
