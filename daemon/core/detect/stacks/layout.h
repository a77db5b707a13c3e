// The parallel groups of ranks, from job.toml's [parallel] and from other sources; finds the group that
// contains given ranks. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/topology.h"

namespace culprit::stacks {

struct SharedGroup {
  std::string name;  // "pipeline group"
  std::vector<uint32_t> ranks;
};

class GroupLayout {
 public:
  // `named`: groups that other sources know.
  GroupLayout(const JobFile& job, std::vector<SharedGroup> named = {});

  // The smallest group that contains all these ranks and at least one more; `ranks` is ascending.
  std::optional<SharedGroup> shared(std::span<const uint32_t> ranks) const;
  // Whether the ranks form one or more complete tensor, context or pipeline groups of one kind. Such ranks
  // wait for each other.
  bool whole_groups(std::span<const uint32_t> ranks) const;
  // 0: unknown.
  uint32_t world() const { return world_; }

 private:
  struct Axis {
    const char* name;
    bool tp, cp, dp, pp;  // dimensions that vary in the group
  };
  std::vector<uint32_t> group_of(uint32_t rank, const Axis& axis) const;

  std::optional<Parallel> parallel_;
  uint32_t world_ = 0;
  std::vector<SharedGroup> named_;
};

}  // namespace culprit::stacks
