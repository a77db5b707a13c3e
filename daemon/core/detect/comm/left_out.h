// Ranks that skipped a collective that their peers entered. From then on, each operation of the rank is
// matched with a later operation of its peers. Each rank counts its own sequence numbers. So the rank's first
// number in each later step is lower than its peers' first number. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/detect/comm/step.h"

namespace culprit::comm {

struct LeftOut {
  int64_t step = 0;                // step of the skipped operation
  uint64_t comm = 0;               // id
  uint32_t rank = 0;               // index in the cluster
  uint32_t peers = 0;              // ranks whose numbers agree
  uint64_t count = 0;              // number of operations that the rank is behind
  CommOp op = CommOp::kAllReduce;  // first operation of its peers in a step
};

class LeftOutWatch {
 public:
  // Call for steps in order, once each, with all of their records.
  void add(const Cluster& cluster, const Step& step);
  // The earliest lasting case. Wrong step labels of a rank have the same effect, so other evidence must
  // agree.
  std::optional<LeftOut> find() const;
  void clear() { behind_.clear(), aligned_.clear(); }

 private:
  struct Behind {
    LeftOut what;
    uint32_t steps = 0;
  };
  void compare(const Cluster& cluster, const Step& step, uint32_t channel);

  std::map<std::pair<uint32_t, uint32_t>, Behind> behind_;  // by channel and rank
  std::set<uint32_t> aligned_;  // channels that matched in at least one whole step
};

}  // namespace culprit::comm
