// Ranks that left out a collective which their peers entered: from then on each of their operations meets a
// later operation of their peers. Each rank counts its own sequence numbers. So the rank's first number of a
// step is lower than that of its peers, in every later step. Pure.
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
  uint32_t peers = 0;              // ranks whose numbers agree
  uint64_t count = 0;              // operations that the rank is behind
  CommOp op = CommOp::kAllReduce;  // what its peers enter first in a step
};

class LeftOutWatch {
 public:
  // Steps in their order, each once, with all of their records.
  void take(const Cluster& cluster, const Step& step);
  // The earliest one that lasts. A rank with other step labels looks the same: other evidence must agree.
  std::optional<LeftOut> find() const;
  void clear() { behind_.clear(), aligned_.clear(); }

 private:
  struct Behind {
    LeftOut what;
    uint32_t steps = 0;
  };
  void compare(const Cluster& cluster, const Step& step, uint32_t channel);

  std::map<std::pair<uint32_t, uint32_t>, Behind> behind_;  // by channel and rank
  std::set<uint32_t> aligned_;                              // channels that matched in a whole step
};

}  // namespace culprit::comm
