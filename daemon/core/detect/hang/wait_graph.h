// The wait graph over all groups of a source. The waits end at a rank that does not wait, in a circle, in an
// operation that all members entered, or at ranks that report nothing.
//
// A rank is held by its earliest open operation; operations enqueued after it have not begun. The rank counts
// as missing in each of those. Pure; accepts any groups.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/time.h"

namespace culprit::hang {

// One rank in one group. Unreported numbers are -1.
struct WaitPlace {
  uint32_t rank = 0;
  int64_t enqueued = -1, completed = -1;
  int64_t waits_at = -1;             // the first open operation
  bool synchronises = true;          // `waits_at` completes on no rank before all ranks entered it
  TimeNs since_ns = kNoTime;         // when the rank entered `waits_at`
  uint32_t order = 0;                // position in the source's report
  std::optional<bool> started = {};  // whether the device began it
};

struct WaitGroup {
  std::vector<uint32_t> members;  // ascending; empty: unknown
  bool exact = false;             // the source knows all open operations of each rank, in order
  bool pairs = false;             // has sends and receives: its numbers differ between ranks
  std::vector<WaitPlace> places;  // at most one per rank
};

// Facts about ranks, from all sources.
struct RankFacts {
  std::set<uint32_t> waits;      // in any operation
  std::set<uint32_t> lives;      // its own process reports something
  std::set<uint32_t> elsewhere;  // seen outside of all collectives
  uint32_t ranks_per_host = 0;   // 0: unknown

  // If many ranks report nothing, some are innocent, unless they share a host.
  bool may_name(const std::set<uint32_t>& ranks) const {
    if (ranks.size() < 2) return !ranks.empty();
    return ranks_per_host > 0 && *ranks.begin() / ranks_per_host == *ranks.rbegin() / ranks_per_host;
  }
};

enum class WaitEnd : uint8_t {
  kNothing,  // the end of the waits is unknown
  kDevice,   // `ranks` have not finished an operation that their peers finished
  kIdle,     // `ranks` are alive and do not wait; others wait for them
  kCircle,   // ranks wait for each other; `ranks`: the smaller side, empty if both are equal
  kAllIn,    // all members entered the operation; `ranks`: the few whose devices have not begun it
  kAbsent,   // `ranks` report nothing; others wait for them
};

struct WaitAnswer {
  WaitEnd end = WaitEnd::kNothing;
  std::vector<uint32_t> ranks;    // ascending
  std::vector<uint32_t> waiting;  // in the operation, ascending
  size_t group = 0;               // index of its group
  int64_t seq = -1;
  // kIdle: true if members of the group report that they wait for `ranks`. kDevice: true if sequence numbers
  // show that peers finished the operation; false if the peers wait in another operation.
  bool by_members = true;
  // kCircle: the operations that hold ranks, widest group first.
  struct Held {
    size_t group = 0;
    int64_t seq = -1;
    std::vector<uint32_t> ranks;  // ascending
  };
  std::vector<Held> circle = {};
};

WaitAnswer follow_waits(std::span<const WaitGroup> groups, const RankFacts& ranks);

}  // namespace culprit::hang
