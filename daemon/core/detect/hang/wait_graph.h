// Who waits for whom over all groups of a source, and where the waits end: at a rank that does not wait, in
// a circle, in an operation that all its members entered, or at ranks without a word.
//
// A rank is held by the earliest of its open operations: what it enqueued behind that one has not begun. So a
// rank counts as missing in each operation but the first. Pure; accepts any groups.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/time.h"

namespace culprit::hang {

// One rank in one group. Numbers that the rank did not tell are -1.
struct WaitPlace {
  uint32_t rank = 0;
  int64_t enqueued = -1, completed = -1;
  int64_t waits_at = -1;             // the first operation that is open
  bool synchronises = true;          // that operation ends on no rank before all entered it
  TimeNs since_ns = kNoTime;         // when it entered that
  uint32_t order = 0;                // in which the source tells of it
  std::optional<bool> started = {};  // the device began it
};

struct WaitGroup {
  std::vector<uint32_t> members;  // ascending; empty: unknown
  bool exact = false;             // the source knows all open operations of a rank, and their order
  bool pairs = false;             // has sends and receives: its numbers are not the same on all ranks
  std::vector<WaitPlace> places;  // at most one a rank
};

// Of ranks, by all sources.
struct RankFacts {
  std::set<uint32_t> waits;      // in anything
  std::set<uint32_t> lives;      // its own process tells something
  std::set<uint32_t> elsewhere;  // seen outside of all collectives
  uint32_t ranks_per_host = 0;   // 0: unknown

  // Of many ranks without a word some are innocent, unless their host is what they share.
  bool may_name(const std::set<uint32_t>& ranks) const {
    if (ranks.size() < 2) return !ranks.empty();
    return ranks_per_host > 0 && *ranks.begin() / ranks_per_host == *ranks.rbegin() / ranks_per_host;
  }
};

enum class WaitEnd : uint8_t {
  kNothing,  // not known where the waits end
  kDevice,   // `ranks` have not finished what their peers finished
  kIdle,     // `ranks` live and do not wait, and others wait for them
  kCircle,   // ranks wait for each other; `ranks`: the smaller side, empty if both are equal
  kAllIn,    // all members entered the operation; `ranks`: the few whose devices have not begun it
  kAbsent,   // nothing is known of `ranks`, and others wait for them
};

struct WaitAnswer {
  WaitEnd end = WaitEnd::kNothing;
  std::vector<uint32_t> ranks;    // ascending
  std::vector<uint32_t> waiting;  // in the operation, ascending
  size_t group = 0;               // index of its group
  int64_t seq = -1;
  // kIdle: the members of the group say that they are waited for. kDevice: the ranks' numbers say that peers
  // finished the operation; else the peers wait in another one.
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
