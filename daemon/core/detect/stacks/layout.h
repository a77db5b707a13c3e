// The parallel groups of ranks (job.toml's [parallel], and groups that other sources name), and which of them
// holds all of some ranks. Pure.
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

  // The smallest group with all of these ranks and at least one more; ranks are ascending.
  std::optional<SharedGroup> shared(std::span<const uint32_t> ranks) const;
  // Whether the ranks are one whole tensor, context or pipeline group, or several of one kind: such ranks
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
