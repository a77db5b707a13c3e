// The collector's own jobs as a scheduler's view, for launchers that show none. A job is the collector's id
// of it, an attempt a run. Jobs of `culprit run --retries` are left out: they run again by themselves.
// The engine's worker.
#pragma once

#include <string>

#include "app/jobs/live_jobs.h"
#include "respond/scheduler_view.h"

namespace culprit::app {

// `scheduler`: "exec" or "webhook".
respond::SchedulerView view_of_own_jobs(const LiveJobs& live, const std::string& scheduler);

}  // namespace culprit::app
