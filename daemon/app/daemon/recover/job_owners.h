// What a collector has of the cluster: for agents, which of their jobs other members own, and the names that
// decide it; for its evidence, when the tables are there. Thread: the loop's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/daemon/collector/collector_service.h"
#include "app/daemon/recover/lease_service.h"
#include "app/daemon/recover/recovery_service.h"

namespace culprit::app {

// The scheduler's id of a job, which decides its partition: agents may know it by another name. Nothing until
// the first view of the scheduler.
inline auto scheduler_ids(const std::unique_ptr<RecoveryService>& recovery) {
  return [&](const std::string& job) -> std::optional<std::string> {
    if (!recovery) return job;
    if (recovery->view_ns() == kNoTime) return std::nullopt;
    return recovery->verdicts().resolve(job);
  };
}

// Asks both once they are there; they outlive the result.
inline auto job_owners(const std::unique_ptr<LeaseService>& leases,
                       const std::unique_ptr<RecoveryService>& recovery) {
  return [&](const std::vector<std::string>& jobs) -> std::vector<peer::JobOwner> {
    if (!leases) return {};
    const auto id_of = [&](const std::string& job) {
      return recovery ? recovery->verdicts().resolve(job) : job;
    };
    return leases->gate()->others_jobs(jobs, id_of);
  };
}

inline void share_jobs(CollectorServiceOptions& options, const Config& config,
                       const std::unique_ptr<LeaseService>& leases,
                       const std::unique_ptr<RecoveryService>& recovery) {
  options.limits.others_jobs = job_owners(leases, recovery);
  options.config = &config;
  options.cluster_ready = [&leases] { return leases && leases->gate()->is_open(); };
}

}  // namespace culprit::app
