#include "core/detect/stacks/layout.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/limits.h"

namespace culprit::stacks {
namespace {

bool holds_all(const std::vector<uint32_t>& group, std::span<const uint32_t> ranks) {
  return std::ranges::includes(group, ranks);
}

}  // namespace

GroupLayout::GroupLayout(const JobFile& job, std::vector<SharedGroup> named)
    : parallel_(job.parallel), named_(std::move(named)) {
  uint64_t world = job.ranks_per_host ? uint64_t{job.hosts.size()} * *job.ranks_per_host : 0;
  if (parallel_) {
    const Parallel& p = *parallel_;
    uint64_t product = 1;
    for (const uint32_t n : {p.tp, p.cp, p.dp, p.pp})
      product = product > limits::kCommRanks ? product : product * std::max(1u, n);
    if (product > limits::kCommRanks || (world != 0 && product != world))
      parallel_.reset();  // it does not describe this job
    else
      world = product;
  }
  if (world <= limits::kCommRanks) world_ = static_cast<uint32_t>(world);
}

std::vector<uint32_t> GroupLayout::group_of(uint32_t rank, const Axis& axis) const {
  CULPRIT_CHECK(parallel_);
  const Parallel& p = *parallel_;
  const std::array<uint32_t, 4> sizes = {std::max(1u, p.tp), std::max(1u, p.cp), std::max(1u, p.dp),
                                         std::max(1u, p.pp)};
  const std::array<bool, 4> varies = {axis.tp, axis.cp, axis.dp, axis.pp};
  std::vector<uint32_t> out = {0};
  uint32_t stride = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const uint32_t own = rank / stride % sizes[d];
    std::vector<uint32_t> next;
    for (const uint32_t base : out)
      for (uint32_t i = varies[d] ? 0 : own; i < (varies[d] ? sizes[d] : own + 1); ++i)
        next.push_back(base + i * stride);
    out = std::move(next);
    stride *= sizes[d];
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<SharedGroup> GroupLayout::shared(std::span<const uint32_t> ranks) const {
  static constexpr Axis kAxes[] = {
      {"tensor group", true, false, false, false},       {"context group", false, true, false, false},
      {"pipeline group", false, false, false, true},     {"data group", false, false, true, false},
      {"replica of the model", true, true, false, true}, {"pipeline stage", true, true, true, false}};
  CULPRIT_CHECK(std::ranges::is_sorted(ranks));
  std::optional<SharedGroup> best;
  if (ranks.empty()) return best;
  const auto offer = [&](const char* name, std::vector<uint32_t> group) {
    if (group.size() <= ranks.size() || (best && best->ranks.size() <= group.size())) return;
    if (world_ != 0 && group.size() >= world_) return;  // a group of all ranks distinguishes nothing
    if (holds_all(group, ranks)) best = SharedGroup{name, std::move(group)};
  };
  if (parallel_ && ranks.back() < world_)
    for (const Axis& axis : kAxes) offer(axis.name, group_of(ranks[0], axis));
  for (const SharedGroup& group : named_) offer(group.name.c_str(), group.ranks);
  return best;
}

bool GroupLayout::whole_groups(std::span<const uint32_t> ranks) const {
  CULPRIT_CHECK(std::ranges::is_sorted(ranks));
  if (!parallel_ || ranks.empty() || ranks.back() >= world_) return false;
  static constexpr Axis kAxes[] = {
      {"", true, false, false, false}, {"", false, true, false, false}, {"", false, false, false, true}};
  for (const Axis& axis : kAxes) {
    std::set<uint32_t> left(ranks.begin(), ranks.end());
    bool whole = true;
    while (whole && !left.empty()) {
      const std::vector<uint32_t> group = group_of(*left.begin(), axis);
      whole = group.size() > 1;
      for (const uint32_t rank : group) whole = left.erase(rank) > 0 && whole;
    }
    if (whole) return true;
  }
  return false;
}

}  // namespace culprit::stacks
