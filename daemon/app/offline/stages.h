// CPU of each stage that a log line passes, as a multiple of memchr to each end of a line of the same bytes.
// A regression shows as a ratio, which depends little on the machine and its load. A memchr over a whole
// piece would be no unit: its speed is that of the machine's caches. For benchmarks. Blocks; this thread
// only.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "app/offline/diagnose.h"

namespace culprit::app {

// Of all repetitions, that with the median ratio, and the range.
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

// Takes every stage over one piece of the files after the other: noise of the machine meets all of them.
StageCosts measure_stages(const JobFiles& files, const logs::ParseOptions& parse,
                          const std::shared_ptr<rules::Ruleset>& set, unsigned repetitions);

}  // namespace culprit::app
