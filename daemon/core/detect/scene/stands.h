// Where ranks stand in their groups: all sights of one rank in one group together. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/detect/scene/sight.h"

namespace culprit::scene {

// One rank in one group, from all sights of it. Ranks that no source names have places of their own.
struct Stand {
  std::optional<uint32_t> rank = {};
  int64_t enqueued = -1, completed = -1;
  std::optional<SightCall> call = {};  // the earliest in which it waits
  bool counted = false;                // `enqueued` is known from the rank itself
  SightState state = SightState::kUnknown;
  std::string doing = {};
  TimeNs since_ns = kNoTime, waited_ns = 0;
  const Evidence* evidence = nullptr;
  uint32_t order = 0;  // of the sight of `call`

  // The `at`-th sight, of this rank and group. Borrows its evidence.
  void add(const Sight& sight, uint32_t at);
  bool waits_at(int64_t seq) const { return call && call->entered && call->seq == seq; }
};

struct Group {
  SightSource source = SightSource::kWatchdog;
  SightGroup of;
  std::vector<Stand> stands;
  std::string title() const {
    if (!of.description.empty()) return "group " + of.description;
    return of.key.empty() ? std::string("their group") : "group " + of.key;
  }
};

// The sights by group and rank. Ranks that a source names by their number in the group alone have one
// place each, without a rank. Numbers of a watchdog far from those of all other ranks of its group count as
// unknown. Borrows the evidence.
std::vector<Group> groups_of(const std::vector<Sight>& sights);

}  // namespace culprit::scene
