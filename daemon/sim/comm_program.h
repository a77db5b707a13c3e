// The actions of each rank of a pipeline stage in a step, in order: compute, and operations that wait for
// other ranks. Made once from the site; a plain value, immutable afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/comm_site.h"

namespace culprit::sim {

enum class Act : uint8_t {
  kCompute,    // on the device: longer on a slow device
  kExpert,     // compute whose load depends on the token routing to experts
  kHost,       // on the host: loading, logging
  kEnter,      // a collective that the rank waits for
  kIssue,      // a collective on the data-parallel stream
  kAwait,      // waits until `count` of those are done
  kTransfer,   // sends and receives, waited for together
  kPost,       // sends without a wait
  kBroadcast,  // of the batch within the tensor-parallel group
};

// Parts of a transfer.
constexpr uint8_t kSendNext = 1, kRecvPrevious = 2, kSendPrevious = 4, kRecvNext = 8;

struct CommAct {
  Act act = Act::kCompute;
  CommOp op = CommOp::kBarrier;
  CommGroup group = CommGroup::kUnknown;
  uint8_t parts = 0;
  uint16_t micro_batch = 0;
  uint32_t count = 0;   // of kAwait
  uint64_t amount = 0;  // nanoseconds or bytes
};

struct CommProgram {
  std::vector<CommAct> actions;
  uint32_t records = 0;
};

CommProgram train_program(const CommSite& site, uint32_t stage);
// Forward passes only, as in an evaluation.
CommProgram evaluation_program(const CommSite& site, uint32_t stage);
CommProgram checkpoint_program(const CommSite& site);

}  // namespace culprit::sim
