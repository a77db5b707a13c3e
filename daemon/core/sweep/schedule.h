// Which pairs measure at the same time. Up to 16 members each pair meets once; beyond, each member meets at
// least 8 others in as many rounds, and log2 of the members if that is more. Pure; any thread.
#pragma once

#include <span>
#include <vector>

#include "core/sweep/pair_run.h"

namespace culprit::sweep {

constexpr uint32_t kAllPairsMost = 16, kRoundsLeast = 8;
constexpr uint32_t kFollowUps = 12;  // rounds at most
constexpr size_t kRepeats = 6;       // quiet runs of a link that is odd each time

std::vector<Round> sweep_rounds(uint32_t members);

// The pairs that stood out, again, with few others at the same time; pairs of hosts that both stood out, as
// they may share a part of the network; and as many pairs that did not, to compare with. Empty: nothing is
// left to repeat. `number` counts from 0.
Round follow_up(uint32_t members, std::span<const PairRun> runs, uint32_t number);

}  // namespace culprit::sweep
