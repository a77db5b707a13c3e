// Makes a simulated training job with every input at once: logs of ranks and kernels, communication traces,
// training metrics, findings of plugins, and for a hang dumps, RAS answers and stacks. out/job has the
// inputs; out/truth.json has the fault and what each input shows of it. Equal options give equal bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/log_job.h"

namespace culprit::sim {

struct MixedJobOptions {
  uint32_t ranks = 64;
  uint32_t ranks_per_host = 8;
  std::string fault = "thermal";     // of mixed_faults()
  std::vector<std::string> without;  // of mixed_inputs(): what is not there
  uint64_t seed = 1;
};

const std::vector<NamedChoice>& mixed_faults();
const std::vector<NamedChoice>& mixed_inputs();

// Writes out/job and out/truth.json. `out` must be absent or empty.
Status simulate_mixed(const MixedJobOptions& options, const std::string& out);

}  // namespace culprit::sim
