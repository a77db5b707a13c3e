#include "sim/cluster/supervisor.h"

namespace culprit::sim {

std::vector<ClusterOrder> OracleSupervisor::step(const ClusterInput& input, TimeNs) {
  using In = ClusterInput::Kind;
  using Kind = ClusterOrder::Kind;
  std::vector<ClusterOrder> out;
  const auto give = [&](Kind kind) -> ClusterOrder& {
    ClusterOrder order;
    order.kind = kind;
    order.job = input.job;
    return out.emplace_back(std::move(order));
  };
  if (input.kind == In::kHostBack) isolated_.erase(input.host);
  // A slow host stays until the save; the others go at once.
  const bool waits = input.truth.slow || slow_.contains(input.job);
  const bool saved = input.kind == In::kProgress && input.saved && slow_.erase(input.job) > 0;
  if (input.truth.slow) slow_.insert(input.job);
  if (!waits || saved || input.kind == In::kEnded)
    for (const uint32_t host : input.truth.faulty)
      if (isolated_.insert(host).second) give(Kind::kIsolate).host = host;
  if (saved || (input.kind == In::kTruth && !input.truth.slow)) give(Kind::kEndTasks);
  if (input.kind != In::kEnded || input.by_person) return out;
  slow_.erase(input.job);
  if (input.truth.person) {
    give(Kind::kHold);
    return out;
  }
  ClusterOrder& again = give(Kind::kRunAgain);
  again.older = input.truth.older;
  again.wait_ns = input.truth.outage_ns;
  again.excluded = input.truth.faulty;
  return out;
}

std::vector<ClusterOrder> TimeoutSupervisor::step(const ClusterInput& input, TimeNs) {
  if (input.kind != ClusterInput::Kind::kEnded || input.by_person) return {};
  ClusterOrder again;
  again.kind = ClusterOrder::Kind::kRunAgain;
  again.job = input.job;
  again.by_queue = true;
  return {std::move(again)};
}

}  // namespace culprit::sim
