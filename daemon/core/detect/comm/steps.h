// Steps that nobody numbered, found by what repeats: of each rank, the operations of its largest group cut
// the rest into blocks, and a step begins with a block that is as large as usual and holds all kinds of
// operations. What comes between (an evaluation, a checkpoint) belongs to the step before, and shifts no
// number. Where no single block holds all kinds, a fixed count of blocks is a step. Groups that share
// operations agree on the number. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/comm.h"

namespace culprit::comm {

// What records told that were numbered before: the numbers of those that follow them go on.
struct StepCount {
  struct Votes {
    uint32_t begins = 0, of = 0;  // ranks for which the block that ends here begins a step; that tell of it
  };
  struct Marker {                     // a communicator whose operations end blocks
    uint32_t period = 0;              // blocks of a step; 0: the block that begins it is told by `votes`
    std::map<uint64_t, Votes> votes;  // by the operation's seq
    int64_t before = 0;               // steps that began before those
    uint64_t from = 0;                // the first seq that they may tell of
  };
  std::map<uint64_t, Marker> markers;
  std::unordered_map<uint32_t, uint32_t> open;  // by rank: operations of its last block, which goes on
  std::optional<int64_t> origin;                // of the numbers that they are given
};

// Numbers the steps of records that tell none, in place, from 0. Gives how many could not be placed: their
// rank repeats nothing.
uint64_t find_steps(std::vector<CommRecord>& records, StepCount& count);

}  // namespace culprit::comm
