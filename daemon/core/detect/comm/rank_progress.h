// Latest step of each rank of a live job, and ranks that returned to an earlier step. Detects steps that all
// ranks have passed, and restarts of the job. Owned by CommTrace; one thread; pure.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/detect/comm/cluster.h"

namespace culprit::comm {

class RankProgress {
 public:
  // Notes that the rank (index) entered an operation of this step. Returns true if the rank was the last
  // returned rank and has now caught up.
  bool advance(uint32_t rank, int64_t step, int64_t begin_ns);
  // Distinguishes a restart from late or repeated records, whose entries precede the rank's latest entry.
  bool goes_back(uint32_t rank, int64_t step, int64_t begin_ns) const {
    return rank < latest_.size() && step < latest_[rank] && begin_ns > newest_ns_[rank];
  }
  void note_back(uint32_t rank, int64_t step, int64_t begin_ns);
  // Whether half of the ranks returned to an earlier step.
  bool restarted() const { return 2 * back_.size() >= known_; }
  // Entries before this time belong to the run before the restart.
  int64_t restarted_ns() const;
  // Keeps only the returned ranks. Returns their latest steps.
  std::vector<int64_t> restart();

  // Number of ranks whose latest step is in [from, to).
  uint32_t ranks_in(int64_t from, int64_t to) const;
  // Whether all members of all groups have reported. Hosts send a block per minute, so a missing member's
  // block may still arrive.
  bool is_complete(Cluster& cluster);

 private:
  struct Back {
    int64_t step = 0, first_ns = 0;  // latest step; first entry
  };
  bool move(uint32_t rank, int64_t step);

  std::vector<int64_t> latest_;           // by rank index: latest step; -1: none
  std::vector<int64_t> newest_ns_;        // by rank index: latest entry
  std::map<int64_t, uint32_t> ranks_in_;  // by step: ranks whose latest step it is
  std::map<uint32_t, Back> back_;         // by rank index
  uint32_t known_ = 0;                    // ranks in latest_ with a step
  bool complete_ = false;                 // as is_complete() found
};

}  // namespace culprit::comm
