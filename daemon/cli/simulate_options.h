// What the verbs of `culprit simulate` share that make a job of their own.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "cli/verbs.h"
#include "sim/log_job.h"

namespace culprit::cli {

std::vector<CLI::Option*> add_job_options(CLI::App& verb, sim::LogJobOptions& job);
void add_simulate_play(CLI::App& simulate, Run& run);

}  // namespace culprit::cli
