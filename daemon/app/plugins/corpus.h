// Events for checks of plugins: each kind in usual form, and unexpected ones (empty texts, texts that are not
// UTF-8, the largest numbers). Equal for the same pass. A pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace culprit::app {

struct CorpusBatch {
  std::string records;  // records from a plughost::EventWriter
  size_t count = 0;
  TimeNs wall = 0;  // time of the following tick
};

// A minute of a job; pass n follows pass n - 1. `lines`: more lines of logs.
std::vector<CorpusBatch> corpus(uint64_t pass, const std::vector<std::string>& lines);

}  // namespace culprit::app
