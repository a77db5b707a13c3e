// The network in a step: compares transfer times (after all ranks entered) of operations of the same kind.
// Finds the fewest NICs, hosts, links, NVLinks or switches that explain the slower ones. Keeps the usual
// duration of each kind over the steps. Owned by FinishedSteps; one thread; pure.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/detect/comm/step.h"

namespace culprit::comm {

class Network {
 public:
  // Sets transfer_ms and kind of the step's operations. Any thread.
  static void measure(const Cluster& cluster, Step& step);
  // Adds the step's durations and sets `usual` of its kinds. Call for steps in order.
  void learn(Step& step);
  // Sets slower_ms. Any thread.
  static void compare(Step& step);
  // Call after the critical path is known. `on_path`: cost of operations on the path, by Instance::local. Any
  // thread.
  static void explain(const Cluster& cluster, const std::vector<double>& on_path, Step& step);

 private:
  // By kind of operation: medians of the first steps. Their lower quartile is the usual duration.
  std::unordered_map<uint64_t, std::vector<float>> usual_;
};

// Follows the waits backward from the step's last operation. Sets RankStep::path, StepResult::chain and
// network_path_ms. Returns, by Instance::local, the time on the path beyond the usual duration.
std::vector<double> walk_path(const Cluster& cluster, Step& step);

}  // namespace culprit::comm
