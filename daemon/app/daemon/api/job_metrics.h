// The metrics of jobs in the Prometheus text format. The label is `job_id`: a scraper gives each target a
// label `job` of its own and renames ours. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/jobs/job_counters.h"

namespace culprit::app {

struct JobMetricsLimits {
  size_t jobs_max = 0;   // at most so many jobs; the others are counted
  TimeNs now = kNoTime;  // wall clock: jobs that ended more than an hour before are not shown
  TimeNs age_ns = 0;     // of the figures
};

// Jobs that need a person come first, then the newest. Each name of a metric occurs, also without values.
std::string job_metrics_text(std::vector<JobCounters> jobs, const JobMetricsLimits& limits);

}  // namespace culprit::app
