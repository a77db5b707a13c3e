#include "core/replay/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace culprit::replay {
namespace {

// The largest divisor from half the square root on, else the square root.
uint32_t default_size(size_t hosts) {
  const auto root = static_cast<uint32_t>(std::sqrt(static_cast<double>(hosts)));
  for (uint32_t size = root; size > 1 && 2 * size >= root; --size)
    if (hosts % size == 0) return size;
  return std::max(root, 1u);
}

}  // namespace

uint32_t Plan::groups() const {
  return size == 0 ? 0 : (static_cast<uint32_t>(hosts.size()) + size - 1) / size;
}

uint32_t Plan::meet() const { return groups() == 0 ? 0 : (size + groups() - 1) / groups(); }

Result<Plan> plan_of(std::vector<std::string> hosts, uint32_t size) {
  if (hosts.size() < 2) return fail(ErrorCode::kInvalid, "a replay needs at least two hosts");
  if (hosts.size() > kHostsMost)
    return fail(ErrorCode::kLimit, fmt::format("a replay takes at most {} hosts", kHostsMost));
  Plan out;
  out.size = size == 0 ? default_size(hosts.size()) : size;
  if (out.size >= hosts.size())
    return fail(ErrorCode::kInvalid, fmt::format("groups of {} leave no second group of {} to compare with",
                                                 counted(out.size, "host"), counted(hosts.size(), "host")));
  out.hosts = std::move(hosts);
  return out;
}

std::vector<HostSet> groups_of(const Plan& plan, uint32_t phase) {
  std::vector<HostSet> out(plan.groups());
  for (uint32_t x = 0; x < plan.hosts.size(); ++x)
    out[phase == 1 ? x / plan.size : x % plan.groups()].push_back(x);
  return out;
}

uint32_t repeats_for(double shows, double sure) {
  if (!(shows > 0)) return 0;
  if (shows >= sure) return 1;
  return static_cast<uint32_t>(std::ceil(std::log1p(-sure) / std::log1p(-shows) - 1e-9));
}

}  // namespace culprit::replay
