// The cluster and the model of a simulated communication trace: members of communicators, bandwidth of
// links, durations of the parts of a step. Plain values, made once by make_comm_site and immutable
// afterwards; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/comm.h"
#include "sim/comm_chance.h"
#include "sim/comm_job.h"

namespace culprit::sim {

// All communicators of one kind; communicator n has members[first[n]] up to, without, members[first[n + 1]].
struct CommGroups {
  std::vector<uint32_t> of_rank, first, members;
  std::vector<uint64_t> ns_per_mib;  // of its slowest link
  std::vector<uint8_t> spans;        // whether it spans several hosts

  size_t count() const { return ns_per_mib.size(); }
  uint32_t size(uint32_t n) const { return first[n + 1] - first[n]; }
};

struct CommSite {
  uint64_t seed = 0, id_seed = 0;
  uint32_t world = 0, tp = 1, cp = 1, dp = 1, pp = 1, ep = 1;
  uint32_t virtual_stages = 1, blocks = 1, micro_batches = 1, buckets = 1;
  uint32_t ranks_per_host = 8, hosts = 1, hosts_per_switch = 16, steps = 1, first_step = 0;
  std::string job;
  std::vector<std::string> host_names;
  std::array<CommGroups, kCommGroups> groups;

  bool async_sends = false, sequence_parallel = false, sharded = true, fused = true, broadcast = false;
  bool device_times = false;
  // Nanoseconds of compute.
  uint64_t block_ns = 0, expert_ns = 0, embed_ns = 0, head_ns = 0, optimizer_ns = 0, loader_ns = 0;
  uint64_t layer_bytes = 0, bucket_bytes = 0, token_bytes = 0;
  uint64_t nic_ns_per_mib = 0, nvlink_ns_per_mib = 0, hop_ns = 0;
  // Spreads of log2, in units.
  int64_t noise = 0, lottery = 0, sequence = 0, expert = 0, stage = 0;
  uint32_t tail_per_100k = 0;
  // Intervals of pauses, in steps of each process; 0: no pauses.
  uint32_t gc_every = 0, checkpoint_every = 0, evaluation_every = 0;
  uint64_t gc_ns = 0, checkpoint_ns = 0;
  int64_t warm_up = kUnit;  // factor on the compute of the first step

  const CommGroups& of(CommGroup kind) const { return groups[static_cast<size_t>(kind)]; }
  uint32_t host_of(uint32_t rank) const { return rank / ranks_per_host; }
  uint32_t stage_of(uint32_t rank) const { return rank / (tp * cp * dp); }
  uint32_t sample_of(uint32_t rank) const { return rank / (tp * cp) % dp; }
  uint32_t expert_of(uint32_t rank) const { return rank / tp % (cp * dp) % ep; }
  uint32_t next(uint32_t rank) const { return (rank + tp * cp * dp) % world; }
  uint32_t previous(uint32_t rank) const { return (rank + world - tp * cp * dp) % world; }
  uint64_t id(CommGroup kind, uint32_t n) const {
    return mix64(id_seed, static_cast<uint64_t>(kind) << 32 | n);
  }
};

Result<CommSite> make_comm_site(const CommJobOptions& options);

}  // namespace culprit::sim
