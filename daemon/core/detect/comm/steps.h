// Numbers steps that the program did not number, by finding repetition. For each rank, operations of its
// largest group divide all other operations into blocks. A step begins with a block of the usual size that
// holds all kinds of operations. Other blocks (an evaluation, a checkpoint) belong to the previous step and
// do not change the numbering. If no single block holds all kinds, a fixed number of blocks is a step. Groups
// that share operations agree on the number. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/comm.h"

namespace culprit::comm {

// State from records numbered earlier: the numbers of later records continue from it.
struct StepCount {
  struct Votes {
    // Ranks for which the block ending here begins a step; ranks with such a block.
    uint32_t begins = 0, of = 0;
  };
  struct Marker {                     // a communicator whose operations end blocks
    uint32_t period = 0;              // blocks per step; 0: `votes` decide which blocks begin steps
    std::map<uint64_t, Votes> votes;  // by the operation's seq
    int64_t before = 0;               // number of steps that began before those in `votes`
    uint64_t from = 0;                // first seq that may have votes
  };
  std::map<uint64_t, Marker> markers;
  std::unordered_map<uint32_t, uint32_t> open;  // by rank: operations of its last, unfinished block
  std::optional<int64_t> origin;                // subtracted from the step numbers
};

// Assigns step numbers from 0 to unnumbered records, in place. Returns the number of records without a step,
// because their rank repeats no operation.
uint64_t find_steps(std::vector<CommRecord>& records, StepCount& count);

}  // namespace culprit::comm
