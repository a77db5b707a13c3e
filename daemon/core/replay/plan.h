// Dual-phase replay (ByteRobust, SOSP '25): which hosts run the job, smaller, in which group. Host x of the
// list, counted from 0, runs in group x div m of phase 1 and in group x mod n of phase 2, with m hosts in a
// group and n groups. With m <= n two groups have at most one host in common, so the host where the failing
// groups meet is at fault.
//
// Pure; any thread. Hosts are indexes into Plan::hosts; phases and groups count from 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace culprit::replay {

constexpr size_t kHostsMost = 2048;  // pairs of hosts are judged: some 17 MB

using HostSet = std::vector<uint32_t>;  // ascending

struct Plan {
  std::vector<std::string> hosts;
  uint32_t size = 0;  // hosts of a group
  uint32_t groups() const;
  // Hosts that a group of each phase may have in common, at most.
  uint32_t meet() const;
};

// `size` 0: near the square root of the number of hosts, equal groups if possible. Fails for less than two
// hosts, more than kHostsMost, and a size that leaves less than two groups.
Result<Plan> plan_of(std::vector<std::string> hosts, uint32_t size);

// Phase 1 or 2. The last groups have fewer hosts if the size does not divide their number.
std::vector<HostSet> groups_of(const Plan& plan, uint32_t phase);

// Runs of a group until a fault that shows in a share `shows` of its runs was seen with probability `sure`.
uint32_t repeats_for(double shows, double sure);

}  // namespace culprit::replay
