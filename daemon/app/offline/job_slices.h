// Splits the lines of a job's files by time and host, into the data that an agent on each host would have had
// by then. Used to play a job to a collector, or to an engine in a benchmark. Plain values; slice_job()
// blocks, on the caller's thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/offline/diagnose.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

// Complete lines of a file: bytes begin..end of its text.
struct JobSlice {
  uint32_t file = 0;
  uint64_t begin = 0, end = 0;
  bool last = false;  // the file's last lines
};

struct SlicedJob {
  JobFiles files;
  std::vector<std::string> hosts;  // files without a known host belong to the host with an empty name
  std::vector<uint32_t> host_of_file;
  // By step number since the job's first line, and host. A silence of all hosts is shortened to an hour.
  std::map<std::pair<int64_t, uint32_t>, std::vector<JobSlice>> slices;
};

// Keeps the order within each file: a line with an earlier time than the previous line belongs to the same
// step.
Result<SlicedJob> slice_job(const std::string& folder, TimeNs step_ns);

}  // namespace culprit::app
