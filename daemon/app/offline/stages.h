// CPU time of each stage for a log line, as a multiple of memchr over the line's bytes, line by line. A
// regression shows as a ratio, which depends little on the machine and its load. A memchr over a whole piece
// would be an unsuitable unit: it measures the machine's caches. For benchmarks. Blocks; this thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "app/offline/diagnose.h"

namespace culprit::app {

// The repetition with the median ratio, and the range of all repetitions.
struct StageCost {
  std::string_view name, what;
  double ratio = 0, least = 0, most = 0;
  double ns_per_line = 0;
  double mb_per_cpu_s = 0;
};

struct StageCosts {
  uint64_t bytes = 0, lines = 0;
  std::vector<StageCost> stages;
};

// Runs every stage over one piece of the files before the next piece, so that noise of the machine affects
// all stages.
StageCosts measure_stages(const JobFiles& files, const logs::ParseOptions& parse,
                          const std::shared_ptr<rules::Ruleset>& set, unsigned repetitions);

}  // namespace culprit::app
