#include "core/detect/stacks/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace culprit::stacks {
namespace {

// Builds the children by name, then joins unbranched chains.
class TreeMaker {
 public:
  StackTree run(std::span<const StackCluster> clusters, size_t depth) {
    nodes_.emplace_back();
    for (const StackCluster& cluster : clusters) add(cluster, depth);
    std::vector<size_t> roots = placed(0);
    out_.roots = std::move(roots);
    return std::move(out_);
  }

 private:
  struct Node {
    std::string frame;
    std::vector<uint32_t> ranks;
    size_t outliers = 0;
    std::map<std::string, size_t> children;
  };

  void add(const StackCluster& cluster, size_t depth) {
    size_t at = 0;
    size_t left = depth;
    for (auto frame = cluster.frames.rbegin(); frame != cluster.frames.rend() && left > 0; ++frame, --left) {
      const auto [child, fresh] = nodes_[at].children.try_emplace(*frame, nodes_.size());
      at = child->second;
      if (fresh) nodes_.push_back({*frame, {}, 0, {}});
      nodes_[at].ranks.insert(nodes_[at].ranks.end(), cluster.ranks.begin(), cluster.ranks.end());
      if (!cluster.healthy) nodes_[at].outliers += cluster.ranks.size();
    }
  }

  std::vector<size_t> placed(size_t parent) {
    std::vector<size_t> out;
    for (const auto& [frame, child] : nodes_[parent].children) out.push_back(place(child));
    std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) {
      const TreeNode& x = out_.nodes[a];
      const TreeNode& y = out_.nodes[b];
      const bool odd_x = x.outliers > 0, odd_y = y.outliers > 0;
      if (odd_x != odd_y) return odd_x;
      return odd_x ? x.ranks.size() < y.ranks.size() : x.ranks.size() > y.ranks.size();
    });
    return out;
  }

  size_t place(size_t at) {
    TreeNode node;
    node.ranks = std::move(nodes_[at].ranks);
    node.outliers = nodes_[at].outliers;
    CULPRIT_CHECK(node.outliers <= node.ranks.size());
    node.frames.push_back(std::move(nodes_[at].frame));
    while (nodes_[at].children.size() == 1) {
      const size_t child = nodes_[at].children.begin()->second;
      if (nodes_[child].ranks.size() != node.ranks.size()) break;  // a stack ends here
      node.frames.push_back(std::move(nodes_[child].frame));
      at = child;
    }
    std::sort(node.ranks.begin(), node.ranks.end());
    const size_t index = out_.nodes.size();
    out_.nodes.push_back(std::move(node));
    std::vector<size_t> children = placed(at);
    out_.nodes[index].children = std::move(children);
    return index;
  }

  std::vector<Node> nodes_;
  StackTree out_;
};

}  // namespace

std::string rank_ranges(std::vector<uint32_t> ranks, size_t most) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string out;
  size_t runs = 0;
  for (size_t i = 0; i < ranks.size();) {
    if (runs++ == most) return fmt::format("{}, {} more", out, ranks.size() - i);
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!out.empty()) out += ',';
    out += last == i ? std::to_string(ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return out.empty() ? "-" : out;
}

StackTree make_tree(std::span<const StackCluster> clusters, size_t depth) {
  return TreeMaker().run(clusters, depth);
}

}  // namespace culprit::stacks
