#include "sim/cluster/supervisor.h"

namespace culprit::sim {

std::vector<ClusterOrder> TimeoutSupervisor::step(const ClusterInput& input, TimeNs) {
  if (input.kind != ClusterInput::Kind::kEnded || input.by_person) return {};
  ClusterOrder again;
  again.kind = ClusterOrder::Kind::kRunAgain;
  again.job = input.job;
  again.by_queue = true;
  return {std::move(again)};
}

}  // namespace culprit::sim
