// Phases that ranks announced (a checkpoint, an evaluation), in which extra time is expected. Keeps the last
// phases of each rank, for at most kRanks ranks. Owned by the engine; one thread; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "base/time.h"

namespace culprit::comm {

class Announced {
 public:
  static constexpr size_t kPhases = 64, kRanks = 1 << 14;

  // `now`: when the report arrived, shortly after the phase changed.
  void add(uint32_t rank, const std::string& name, bool begins, TimeNs now);
  // Whether the rank was in a phase at any time within the range.
  bool covers(uint32_t rank, TimeNs from, TimeNs to) const;

 private:
  struct Phase {
    std::string name;
    TimeNs begin = 0, end = 0;
    bool open = true;
  };
  std::unordered_map<uint32_t, std::deque<Phase>> phases_;  // by rank
};

}  // namespace culprit::comm
