// Steps that nobody numbered, found by what repeats: of each rank, an operation of its largest group that
// comes back at a fixed distance ends a step. Groups that share operations agree on the number. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/comm.h"

namespace culprit::comm {

// Numbers the steps of records that tell none, in place, from 0. Gives how many could not be placed: their
// rank repeats nothing. `origin` is what the first records that were numbered told: the numbers of those that
// follow them go on.
uint64_t find_steps(std::vector<CommRecord>& records, std::optional<int64_t>& origin);

}  // namespace culprit::comm
