// Makes the communication traces of a simulated training job with known faults: out/job/*.comm and job.toml
// as in formats.md sections 3 and 6, and the truth. The same options give the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/log_job.h"

namespace culprit::sim {

struct CommJobOptions {
  uint32_t world = 64;
  uint32_t tp = 0, pp = 0, dp = 0, ep = 1, cp = 1;  // 0: chosen by the seed, so that their product is world
  uint32_t virtual_stages = 0, layers = 0, micro_batches = 0;  // 0: chosen by the seed
  uint32_t ranks_per_host = 8;
  uint32_t hosts_per_switch = 16;
  uint32_t steps = 12;
  std::vector<std::string> faults;  // names of comm_faults(); none: a healthy job
  std::string onset;                // start, intermittent, or a step counted from 0; empty: by the seed
  double severity = 0;              // how much slower what is faulty is (2: twice); 0: so that it shows
  uint64_t seed = 1;
  uint32_t missing_hosts = 0;  // hosts whose files were lost; never one that a fault is on
  bool unknown_steps = false, unknown_groups = false, unknown_bytes = false, no_joins = false;
  bool plain = false;  // no pauses, checkpoints, evaluation, skew of clocks and lost records
};

const std::vector<NamedChoice>& comm_faults();

// Writes out/job and out/truth.json. `out` must not exist or be empty.
Status simulate_comm(const CommJobOptions& options, const std::string& out);

}  // namespace culprit::sim
