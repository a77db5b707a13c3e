// The metrics of jobs in the Prometheus text format. The label is `job_id`, since a scraper sets its own
// label `job` for each target and renames ours. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/jobs/job_counters.h"

namespace culprit::app {

struct JobMetricsLimits {
  size_t jobs_max = 0;   // limit of listed jobs; further jobs are counted
  TimeNs now = kNoTime;  // wall clock: jobs that ended more than an hour earlier are left out
  TimeNs age_ns = 0;     // age of the values
};

// Jobs that need a person come first, then the newest ones. Each metric's name occurs, even without values.
std::string job_metrics_text(std::vector<JobCounters> jobs, const JobMetricsLimits& limits);

}  // namespace culprit::app
