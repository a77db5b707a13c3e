// Makes a simulated training job that hangs, as its sources show it: rank logs with watchdog lines, Flight
// Recorder dumps, two answers of NCCL RAS, stack dumps. out/job has the sources and job.toml;
// out/truth.json has the kind, the class and the ranks at fault. Equal options give equal bytes. The
// formats are written here and never by the product's readers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/log_job.h"

namespace culprit::sim {

struct HangJobOptions {
  uint32_t ranks = 64;
  uint32_t tp = 0, pp = 0;  // 0: chosen by the seed; data parallel takes the rest
  uint32_t ranks_per_host = 8;
  std::string kind = "loader";       // of hang_kinds()
  std::vector<std::string> sources;  // of hang_sources(); none: all
  double capture = 1;                // share of ranks with a dump, a stack and the end of their log
  uint64_t seed = 1;
};

const std::vector<NamedChoice>& hang_kinds();
const std::vector<NamedChoice>& hang_sources();

// Writes out/job and out/truth.json. `out` must be absent or empty.
Status simulate_hang(const HangJobOptions& options, const std::string& out);

}  // namespace culprit::sim
