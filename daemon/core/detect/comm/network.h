// The network in a step: what operations took once all were there, compared with their like, and which NIC,
// host, link, NVLink or switch explains those that took longer with the fewest assumptions. Keeps what is
// usual for each kind of operation over the steps. Owned by CommTrace, one thread, pure.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/detect/comm/step.h"

namespace culprit::comm {

class Network {
 public:
  // Fills in transfer_ms of the step's operations, and their kinds. Any thread.
  static void measure(const Cluster& cluster, Step& step);
  // Takes in what the kinds took and says what is usual: of one step after another.
  void learn(Step& step);
  // Fills in slower_ms. Any thread.
  static void compare(Step& step);
  // After the path is known: `on_path` has by Instance::local what operations cost there. Any thread.
  static void explain(const Cluster& cluster, const std::vector<double>& on_path, Step& step);

 private:
  // By kind of operation, the medians of the first steps: what is usual is their lower quarter.
  std::unordered_map<uint64_t, std::vector<float>> usual_;
};

// Follows the waiting back from the step's last operation: fills in RankStep::path, StepResult::chain and
// network_path_ms; gives by Instance::local what operations took there beyond what is usual.
std::vector<double> walk_path(const Cluster& cluster, Step& step);

}  // namespace culprit::comm
