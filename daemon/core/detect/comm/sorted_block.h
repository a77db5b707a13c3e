// Sorts a block of one host's records into steps before the trace ingests them. Hosts share no ranks, so
// blocks of several hosts are sorted in parallel. Handles only blocks without anything new: finished
// operations of known ranks and streams, in numbered steps. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/detect/comm/cluster.h"
#include "core/detect/comm/hang.h"
#include "core/detect/comm/step.h"

namespace culprit::comm {

// Records of a host; borrowed.
struct HostRecords {
  const std::string* host = nullptr;
  std::span<const CommRecord> records;
};

struct SortedBlock {
  struct Run {  // consecutive records of a step
    int64_t step = 0;
    std::vector<SortedRecord> records;
  };
  bool sorted = false;  // false: the block has something new, and the trace ingests its records one by one
  std::vector<Run> runs;
  uint64_t records = 0;
  int64_t first_ns = INT64_MAX, last_ns = 0;
};

// Sorts the blocks of one host (indices in `of`) up to the first block with something new. Notes the
// operations in `cluster` and `open`; a second ingestion of the records has no effect there. One thread per
// host, while no thread adds to `cluster` or `open`.
void sort_blocks(std::span<const HostRecords> blocks, std::span<const uint32_t> of, Cluster& cluster,
                 OpenOperations& open, std::vector<SortedBlock>& out);

}  // namespace culprit::comm
