// The lines of a job's files, cut by when they were written and by the host that wrote them: what an agent on
// each host would have had by then. For what plays a job again: to a collector, or to an engine in a bench.
// Plain values; slice_job() blocks, on the caller's thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/diagnose.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

// Whole lines of a file, bytes begin..end of its text.
struct JobSlice {
  uint32_t file = 0;
  uint64_t begin = 0, end = 0;
  bool last = false;  // nothing of the file follows
};

struct SlicedJob {
  JobFiles files;
  std::vector<std::string> hosts;  // files that tell none belong to the one of an empty name
  std::vector<uint32_t> host_of_file;
  // By the number of the step since the job's first line, and the host. Where all were silent for longer than
  // an hour it is an hour.
  std::map<std::pair<int64_t, uint32_t>, std::vector<JobSlice>> slices;
};

// Each file's own order is kept: a line whose time is before that of the one above it belongs to its step.
Result<SlicedJob> slice_job(const std::string& folder, TimeNs step_ns);

}  // namespace culprit::app
