// Makes the communication traces of a simulated training job with known faults: out/job/*.comm and job.toml
// as in formats.md sections 3 and 6, and the truth. Equal options give equal bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/log_job.h"

namespace culprit::sim {

struct CommJobOptions {
  uint32_t world = 64;
  // 0: chosen by the seed, with the product equal to `world`.
  uint32_t tp = 0, pp = 0, dp = 0, ep = 1, cp = 1;
  uint32_t virtual_stages = 0, layers = 0, micro_batches = 0;  // 0: chosen by the seed
  uint32_t ranks_per_host = 8;
  uint32_t hosts_per_switch = 16;
  uint32_t steps = 12;
  std::vector<std::string> faults;  // names of comm_faults(); none: a healthy job
  std::string onset;                // start, intermittent, or a step number from 0; empty: by the seed
  double severity = 0;  // slowdown factor of the faulty part; 0: chosen so that the fault is visible
  uint64_t seed = 1;
  uint32_t missing_hosts = 0;  // number of hosts whose files are missing; never a faulty host
  bool unknown_steps = false, unknown_groups = false, unknown_bytes = false, no_joins = false;
  uint64_t epoch_ns = 0;  // when the first step begins; 0: by the seed
  bool plain = false;     // without pauses, checkpoints, evaluation, clock skew and lost records
};

const std::vector<NamedChoice>& comm_faults();

// Writes out/job and out/truth.json. `out` must be absent or empty.
Status simulate_comm(const CommJobOptions& options, const std::string& out);

}  // namespace culprit::sim
