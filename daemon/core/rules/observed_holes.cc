#include "core/rules/observed_holes.h"

#include <algorithm>
#include <iterator>

namespace culprit::rules {
namespace {

using H = ObservedHole;
using T = HoleType;

constexpr HoleKey kHoleKeys[] = {
    {H::kOwnRank, "own_rank", T::kNumber, "the rank that the line is of. Without it that of its log"},
    {H::kGroupRank, "group_rank", T::kNumber, "its number within the group"},
    {H::kGroup, "group", T::kText,
     "the group's name, equal on all of its members. `0`: the group of all ranks"},
    {H::kGroupName, "group_name", T::kText, "what the group is for: `tensor_parallel`"},
    {H::kGroupLocal, "group_local", T::kText, "the group's number within the process"},
    {H::kWorld, "world", T::kMark, "the line is of the group of all ranks, whatever else it names"},
    {H::kOp, "op", T::kText, "the operation: `all_reduce`"},
    {H::kSeq, "seq", T::kNumber, "its number within the group"},
    {H::kIn, "in", T::kNumber, "elements that it takes"},
    {H::kOut, "out", T::kNumber, "elements that it gives"},
    {H::kSizes, "sizes", T::kText, "its shapes, where no elements are counted: `20, 10`"},
    {H::kTypes, "types", T::kText, "the types of its elements"},
    {H::kSite, "site", T::kText,
     "the place in the program that called it: `train.py:120`. A line with only this goes on with the line "
     "before it"},
    {H::kLibrarySite, "library_site", T::kText, "such a place within a library: a later `site` replaces it"},
    {H::kFunction, "function", T::kText, "the function at that place"},
    {H::kWaitedMs, "waited_ms", T::kNumber, "how long the rank waited, in milliseconds"},
    {H::kWaitedS, "waited_s", T::kNumber, "the same in seconds"},
    {H::kTimedOut, "timed_out", T::kMark, "a watchdog gave up: the operation ran longer than its limit"},
    {H::kEnqueued, "enqueued", T::kNumber, "the number of the last operation that the rank called"},
    {H::kCompleted, "completed", T::kNumber, "the number of the last one that ended"},
    {H::kStore, "store", T::kMark, "the rank waits for a key of a store, which another rank sets"},
    {H::kStuck, "stuck", T::kMark, "the watchdog itself is blocked; says no more than that"},
    {H::kJoined, "joined", T::kList, "ranks of the group that are in the operation"},
    {H::kAbsent, "absent", T::kList, "ranks that did not come to the operation or the meeting"},
    {H::kAsks, "asks", T::kNumber, "this rank came, and names the rank that knows who did not"},
    {H::kCaller, "caller", T::kNumber, "a rank of the group that called `op`, where another called `op2`"},
    {H::kCaller2, "caller2", T::kNumber, "the other rank, with the four holes below"},
    {H::kOp2, "op2", T::kText, ""},
    {H::kSeq2, "seq2", T::kNumber, ""},
    {H::kSizes2, "sizes2", T::kText, ""},
    {H::kTypes2, "types2", T::kText, ""},
    {H::kClosed, "closed", T::kMark, "a peer closed its connection"},
    {H::kClosedBy, "closed_by", T::kText, "the peer's address or host"},
    {H::kAtExit, "at_exit", T::kMark,
     "the library closes its connections at any exit: where all ranks print, such a line proves nothing"},
    {H::kMeeting, "meeting", T::kText, "where ranks meet, as the report names it: `MPI_Init`"},
    {H::kBarrier, "barrier", T::kText, "the name of a barrier in which they meet"},
    {H::kRendezvous, "rendezvous", T::kMark, "they meet in the rendezvous that starts the job"},
    {H::kGroupStart, "group_start", T::kMark, "they meet where the group of processes starts"},
    {H::kMeets, "meets", T::kMark, "they meet in a barrier whose name the line may lack"},
    {H::kStarts, "starts", T::kMark, "the meeting is at the start of the job"},
    {H::kLost, "lost", T::kMark, "the absent ones had come, and answer no more"},
    {H::kTasks, "tasks", T::kMark, "who meets are tasks with numbers of their own, not ranks"},
    {H::kCame, "came", T::kNumber, "how many came"},
    {H::kAll, "all", T::kNumber, "how many have to come"},
    {H::kAbsentTasks, "absent_tasks", T::kText,
     "names that end in the numbers of those who did not come: `/job:w/task:3`"},
    {H::kStarted, "started", T::kNumber, "how many ranks a launcher started"},
    {H::kTensorWait, "tensor_wait", T::kMark, "some ranks did not submit tensors that the next lines list"},
    {H::kTensorsAbsent, "tensors_absent", T::kText,
     "tensors, each with the ranks that did not submit it: `a [missing ranks: 1, 2], b [missing ranks: 1]`"},
    {H::kTensorsJoined, "tensors_joined", T::kText, "tensors, each with the ranks that did"},
    {H::kTensors, "tensors", T::kText,
     "tensors that one rank did not submit: `a, b`; at the end `...` if there are more"},
    {H::kLacks, "lacks", T::kNumber, "that rank. Without it the rank of the log"},
};

constexpr bool is_in_order() {
  for (size_t i = 0; i < std::size(kHoleKeys); ++i)
    if (static_cast<size_t>(kHoleKeys[i].hole) != i) return false;
  return std::size(kHoleKeys) == kObservedHoles;
}
static_assert(is_in_order());

}  // namespace

std::span<const HoleKey> observed_holes() { return kHoleKeys; }

std::optional<ObservedHole> observed_hole(std::string_view name) {
  const auto* const at = std::ranges::find(kHoleKeys, name, &HoleKey::name);
  return at == std::end(kHoleKeys) ? std::nullopt : std::optional(at->hole);
}

std::string_view type_name(HoleType type) {
  constexpr std::string_view kNames[] = {"a number", "a text", "numbers", "a mark"};
  return kNames[static_cast<size_t>(type)];
}

}  // namespace culprit::rules
