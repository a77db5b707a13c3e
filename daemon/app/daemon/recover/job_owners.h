// For agents: which of their jobs other members of the cluster own. Thread: the loop's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/daemon/recover/lease_service.h"
#include "app/daemon/recover/recovery_service.h"

namespace culprit::app {

// Asks both once they are there; they outlive the result. Agents may know a job by another name than the
// scheduler's id, which decides its partition.
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

}  // namespace culprit::app
