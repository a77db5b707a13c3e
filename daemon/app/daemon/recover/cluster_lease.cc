#include "app/daemon/recover/cluster_lease.h"

#include <fmt/format.h>

#include "respond/order.h"

namespace culprit::app {
namespace {

// An action that begins now ends within the lease, or writes with versions that it read.
constexpr TimeNs kMargin = 2 * kNsPerSecond;

}  // namespace

Status ClusterLease::renew(respond::Pace& pace) {
  if (!acts_) return {};
  const std::lock_guard lock(mutex_);
  const TimeNs asked = pace.now();
  const auto state = lease_.hold(pace);
  const std::string name = fmt::format("the Lease {}/{}", name_.space, name_.name);
  if (!state.held) {
    held_until_ns_ = kNoTime;
    if (!state.trouble.empty()) return fail(ErrorCode::kIo, fmt::format("{}: {}", name, state.trouble));
    return fail(ErrorCode::kBusy,
                fmt::format("{} is of {}, which acts", name, respond::one_line(state.holder)));
  }
  if (state.trouble.empty()) held_until_ns_ = asked + name_.duration_ns - kMargin;
  return {};
}

}  // namespace culprit::app
