// The host that stores a host's copy: one outside all of its parallel groups, since a whole group may be
// taken out at once (ByteRobust isolates the hosts of a pipeline). Where every host shares a group, the
// partner shares the fewest and the largest. Deterministic. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/topology.h"

namespace culprit::checkpoint {

// Hosts that work together; `kind` is "tp", "pp", "dp", "cp", or the name of a communicator.
struct HostGroup {
  std::string kind;
  std::vector<uint32_t> hosts;  // indices
};

struct CopyPartner {
  uint32_t to = 0;                  // index of the host
  std::vector<std::string> shared;  // kinds of groups that both are in; empty: none
};

struct CopyPlan {
  std::vector<CopyPartner> partners;  // of each host
  uint32_t sharing = 0;               // hosts whose partner shares a group with them
  uint32_t receives_most = 0;         // copies on one host: 1 or 2
};

constexpr uint32_t kPlanHosts = 8192;

// An error for fewer than two hosts, more than kPlanHosts, or a group with a host that does not exist.
Result<CopyPlan> plan_copies(uint32_t hosts, const std::vector<HostGroup>& groups);

// The groups of job.toml that span several hosts. An error names the missing key.
Result<std::vector<HostGroup>> host_groups(const JobFile& job);

}  // namespace culprit::checkpoint
