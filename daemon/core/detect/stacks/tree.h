// The prefix tree of stacks with the ranks at each frame, and sets of ranks as text. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/report.h"

namespace culprit::stacks {

// "0-10,12-63"; empty: "-". Ranks in any order. Beyond `most` runs, only the number of ranks: "…, 40 more".
std::string rank_ranges(std::vector<uint32_t> ranks, size_t most = 64);

// A chain of frames shared by the same ranks, from the outermost inwards.
struct TreeNode {
  std::vector<std::string> frames;
  std::vector<uint32_t> ranks;   // ascending
  size_t outliers = 0;           // number of these ranks in unhealthy clusters
  std::vector<size_t> children;  // indices into StackTree::nodes; those with outliers first, then the largest
};
struct StackTree {
  std::vector<TreeNode> nodes;
  std::vector<size_t> roots;
};

// Takes clusters with frames innermost first, as in a report. Frames are compared by text. Only the outermost
// `depth` frames of a cluster count.
StackTree make_tree(std::span<const StackCluster> clusters, size_t depth = 128);

}  // namespace culprit::stacks
