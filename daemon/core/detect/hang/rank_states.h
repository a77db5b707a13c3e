// The state of each rank in each of its groups, joined from all its observations. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/detect/hang/observation.h"

namespace culprit::hang {

// One rank in one group, from all its observations. Each rank without a known number has its own entry.
struct RankState {
  std::optional<uint32_t> rank = {};
  int64_t enqueued = -1, completed = -1;
  std::optional<ObservedCall> call = {};  // the earliest call in which the rank waits
  bool counted = false;                   // `enqueued` comes from the rank itself
  ObservedState state = ObservedState::kUnknown;
  std::string doing = {};
  TimeNs since_ns = kNoTime, waited_ns = 0;
  const Evidence* evidence = nullptr;
  uint32_t order = 0;  // position of the observation of `call`

  // Adds the `at`-th observation, of this rank and group. Borrows its evidence.
  void add(const Observation& observation, uint32_t at);
  bool waits_at(int64_t seq) const { return call && call->entered && call->seq == seq; }
};

struct Group {
  ObservationSource source = ObservationSource::kWatchdog;
  ObservedGroup of;
  std::vector<RankState> rank_states;
  std::string title() const {
    if (!of.description.empty()) return "group " + of.description;
    return of.key.empty() ? std::string("their group") : "group " + of.key;
  }
};

// The observations by group and rank. A rank known only by its group rank has its own entry, without a global
// rank. A watchdog's sequence number far from all others of its group counts as unknown. Borrows the
// evidence.
std::vector<Group> groups_of(const std::vector<Observation>& observations);

}  // namespace culprit::hang
