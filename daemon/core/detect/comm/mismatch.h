// Ranks that enter different operations under one sequence number of a communicator: a fault of the program.
// Sizes must be equal for reductions and broadcasts; for gathers and all-to-alls they may differ. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "core/detect/comm/step.h"

namespace culprit::comm {

struct Mismatch {
  int64_t step = 0, first_ns = 0;
  uint64_t comm = 0, seq = 0;
  CommOp most = CommOp::kJoin, other = CommOp::kJoin;  // operation of the majority, and of the others
  uint64_t bytes = 0, other_bytes = 0;                 // sizes, if the operation is the same
  uint32_t members = 0;                                // ranks in the majority
  std::vector<uint32_t> ranks;                         // indices of the minority; on a tie, of all
};

// Appends the mismatches of a step, up to a fixed number. Any thread.
void find_mismatches(const Cluster& cluster, const Step& step, std::vector<Mismatch>& out);
// Appends a mismatch; over the limit, drops the oldest.
void keep_mismatch(Mismatch found, std::vector<Mismatch>& out);
// The mismatch that stopped the job: its communicator has no later operation. If ranks continued, a rank only
// counts differently, which is no fault. nullptr: none.
const Mismatch* last_mismatch(const Cluster& cluster, const std::vector<Mismatch>& all);

}  // namespace culprit::comm
