// Ranks that enter different operations under one number of one communicator: the program's fault. Sizes must
// be alike where all reduce or one sends to all; of gathers and all-to-alls they may differ by right. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "core/detect/comm/step.h"

namespace culprit::comm {

struct Mismatch {
  int64_t step = 0, first_ns = 0;
  uint64_t comm = 0, seq = 0;
  CommOp most = CommOp::kJoin, other = CommOp::kJoin;  // what most entered, and what the others did
  uint64_t bytes = 0, other_bytes = 0;                 // where the operation is the same
  uint32_t members = 0;                                // of those who entered it, that did as most
  std::vector<uint32_t> ranks;                         // indices of the others; of two halves both
};

// Adds those of a step; no more than a few are kept.
void find_mismatches(const Cluster& cluster, const Step& step, std::vector<Mismatch>& out);
// The one that stopped the job: its communicator did nothing more. Where ranks went on, one of them counts
// differently and the records mean nothing. nullptr: none.
const Mismatch* last_mismatch(const Cluster& cluster, const std::vector<Mismatch>& all);

}  // namespace culprit::comm
