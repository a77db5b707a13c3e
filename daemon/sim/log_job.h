// Makes the logs of a simulated training job, logs of healthy jobs, and the truth. Equal options give equal
// bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::sim {

struct LogJobOptions {
  uint32_t hosts = 16;
  uint32_t ranks_per_host = 8;
  std::string fault = "gpu-lost";  // a name of log_faults(), or "none"
  std::string layout = "files";    // a name of log_layouts()
  std::string framework = "";      // a name of log_frameworks(); empty: chosen by the seed
  uint64_t seed = 1;
  uint32_t iterations = 200;  // of a healthy job
  uint32_t healthy = 3;       // number of healthy jobs
  uint64_t bytes = 0;         // approximate size to which ordinary lines pad the job's log; 0: no padding
};

struct NamedChoice {
  std::string_view name, help;
};
const std::vector<NamedChoice>& log_faults();
const std::vector<NamedChoice>& log_layouts();
const std::vector<NamedChoice>& log_frameworks();

// Writes out/job, out/healthy/<n> and out/truth.json. `out` must be absent or empty.
Status simulate_logs(const LogJobOptions& options, const std::string& out);

}  // namespace culprit::sim
