#include "app/daemon/recover/own_jobs.h"

#include <set>
#include <utility>

#include "app/jobs/job_recognition.h"

namespace culprit::app {

respond::SchedulerView view_of_own_jobs(const LiveJobs& live, const std::string& scheduler) {
  using respond::SeenJob;
  respond::SchedulerView out;
  out.hosts_known = false;
  std::set<std::string> ids;  // newest first: of a job's runs the last one
  for (const LiveJobSummary& job : live.jobs()) {
    if (!job.has_engine || job.attempts || job.id == kDefaultJob || !ids.insert(job.id).second) continue;
    SeenJob seen;
    seen.job = {scheduler, job.id, "", kNoTime, job.run};
    seen.owner = SeenJob::Owner::kNamed;
    seen.may_requeue = true;
    seen.hosts = live.hosts_of_job(job.id);
    seen.nodes = static_cast<uint32_t>(seen.hosts.size());
    seen.word = std::string(to_string(job.state));
    switch (job.state) {
      case JobState::kRunning:
        seen.state = SeenJob::State::kRunning;
        break;
      case JobState::kEnded:  // without a fault: nothing is to be run again
        seen.state = SeenJob::State::kCompleted;
        break;
      case JobState::kFailed:
        seen.state = SeenJob::State::kFailed;
        break;
    }
    out.jobs.push_back(std::move(seen));
  }
  return out;
}

}  // namespace culprit::app
