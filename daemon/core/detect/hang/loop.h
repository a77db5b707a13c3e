// Ranks with different numbers of batches: a rank without batches leaves the loop and enters the next
// barrier; the others wait for this rank in an operation of the loop. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/detect/hang/rank_states.h"
#include "core/detect/hang/sentence.h"

namespace culprit::hang {

// Ranks that wait in one operation.
struct LoopSide {
  std::vector<uint32_t> ranks;  // ascending
  ObservedCall call;
};

// What two sides that wait for each other show about a loop.
struct LoopAnswer {
  std::vector<uint32_t> few, many;
  std::string title;  // empty: the barrier may be an all-reduce of the loop
  std::string why;
};
// Empty unless exactly one side is in a barrier and the sides differ in size. `begun`: a loop can have begun.
// `name` may be empty.
std::optional<LoopAnswer> loop_answer(const LoopSide& a, const LoopSide& b, bool begun,
                                      const NameOfRank& name);

// The sides of a mismatch that a source states: the stated ranks, and all others, each side in one operation.
std::optional<std::pair<LoopSide, LoopSide>> stated_sides(const std::vector<Group>& groups,
                                                          ObservationSource source,
                                                          const std::vector<uint32_t>& ranks);

// All ranks of the watchdogs wait in two operations. Few or most are in a barrier of the default group, the
// rest in another group. All ranks belong to the default group, so each side waits for the other.
struct LoopWait {
  LoopSide few, many;
  const Group *of_few = nullptr, *of_many = nullptr;
  std::vector<const RankState*> rank_states;
};
std::optional<LoopWait> divided_loop(const std::vector<Group>& groups);

}  // namespace culprit::hang
