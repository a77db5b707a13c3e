// The table of several jobs that were diagnosed together. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/remote.h"
#include "model/report.h"

namespace culprit::cli {

struct JobRow {
  std::string name;
  const Report* report;
};

// "failed", "hangs", "slow", "unclear", "odd", "well", "unknown" or "empty", for a job in files.
std::string state_of(const Report& report);

// State of a job in /v1/jobs: "running", "hangs", "failed", "ended"; with the attempt of a job that runs
// again: "running, attempt 2 of 4". Of a chain of jobs also which one: "…, as job 102".
std::string state_of_job(const Json& job);
// The headline of the last report; from an older daemon, the title of the verdict; "-": none.
std::string found_in_job(const Json& job);

// A row for each job: name, hosts, state and the diagnosis in one line. Safe for a terminal.
std::string jobs_table(const std::vector<JobRow>& jobs, bool color);

}  // namespace culprit::cli
