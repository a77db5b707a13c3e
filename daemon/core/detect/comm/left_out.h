// Ranks that left out a collective which their peers entered: from then on each of their operations meets the
// next one of the others. Sequence numbers are counted by each rank for itself, so they show it: the rank's
// first number of a step is lower than that of its peers, in every step from then on. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/detect/comm/step.h"

namespace culprit::comm {

struct LeftOut {
  int64_t step = 0;                // in which it happened
  uint64_t comm = 0;               // id
  uint32_t rank = 0;               // index in the cluster
  uint32_t peers = 0;              // ranks that agree with one another
  uint64_t count = 0;              // operations that it is behind
  CommOp op = CommOp::kAllReduce;  // what its peers enter first in a step
};

class LeftOutWatch {
 public:
  // Steps in their order, each once, with all of their records.
  void take(const Cluster& cluster, const Step& step);
  // One that lasts. A rank whose steps are labelled differently looks the same: other evidence has to agree.
  std::optional<LeftOut> find() const;
  void clear() { behind_.clear(), aligned_.clear(); }

 private:
  struct Behind {
    LeftOut what;
    uint32_t steps = 0;
  };
  void compare(const Cluster& cluster, const Step& step, uint32_t channel);

  std::map<std::pair<uint32_t, uint32_t>, Behind> behind_;  // by channel and rank
  std::set<uint32_t> aligned_;                              // channels of which a whole step matched
};

}  // namespace culprit::comm
