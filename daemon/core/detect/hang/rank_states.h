// Where ranks stand in their groups: all observations of one rank in one group together. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/detect/hang/observation.h"

namespace culprit::hang {

// One rank in one group, from all observations of it. Ranks that no source names have places of their own.
struct RankState {
  std::optional<uint32_t> rank = {};
  int64_t enqueued = -1, completed = -1;
  std::optional<ObservedCall> call = {};  // the earliest in which it waits
  bool counted = false;                   // `enqueued` is known from the rank itself
  ObservedState state = ObservedState::kUnknown;
  std::string doing = {};
  TimeNs since_ns = kNoTime, waited_ns = 0;
  const Evidence* evidence = nullptr;
  uint32_t order = 0;  // of the observation of `call`

  // The `at`-th observation, of this rank and group. Borrows its evidence.
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

// The observations by group and rank. Ranks that a source names by their number in the group alone have one
// place each, without a rank. Numbers of a watchdog far from those of all other ranks of its group count as
// unknown. Borrows the evidence.
std::vector<Group> groups_of(const std::vector<Observation>& observations);

}  // namespace culprit::hang
