#include "cli/stack_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "core/detect/stacks/tree.h"

namespace culprit::cli {
namespace {

using stacks::StackTree;
using stacks::TreeNode;

constexpr size_t kRunsShown = 24;     // limit of shown ranges in a set of ranks
constexpr size_t kTreeDepthMax = 64;  // limit of nested chains; deeper ones are cut

std::string rank_count(const TreeNode& node) { return counted(node.ranks.size(), "rank"); }

bool differs(const TreeNode& node) { return node.outliers > 0 && node.outliers == node.ranks.size(); }

class TreeText {
 public:
  explicit TreeText(const StackTree& tree) : tree_(tree) {}

  std::string run() {
    for (const size_t root : tree_.roots) add(root, 0);
    return std::move(out_);
  }

 private:
  void add(size_t at, size_t depth) {
    const TreeNode& node = tree_.nodes[at];
    const std::string indent(2 * depth, ' ');
    out_ += fmt::format("{}[{}] {}{}\n", indent, stacks::rank_ranges(node.ranks, kRunsShown),
                        rank_count(node), differs(node) ? "  << differs" : "");
    for (const std::string& frame : node.frames) out_ += fmt::format("{}  {}\n", indent, to_terminal(frame));
    if (depth >= kTreeDepthMax && !node.children.empty()) {
      out_ += indent + "  …\n";
      return;
    }
    for (const size_t child : node.children) add(child, depth + 1);
  }

  const StackTree& tree_;
  std::string out_;
};

void write_nodes(JsonWriter& w, const StackTree& tree, const std::vector<size_t>& nodes, size_t depth) {
  w.array(nodes, [&](size_t at) {
    const TreeNode& node = tree.nodes[at];
    w.object([&] {
      w.field("ranks", stacks::rank_ranges(node.ranks, SIZE_MAX));
      w.field("count", static_cast<uint64_t>(node.ranks.size()));
      w.field("outliers", static_cast<uint64_t>(node.outliers));
      w.values("frames", node.frames);
      w.member("children", [&] {
        write_nodes(w, tree, depth < kTreeDepthMax ? node.children : std::vector<size_t>(), depth + 1);
      });
    });
  });
}

}  // namespace

std::string stack_tree_text(std::span<const StackCluster> clusters) {
  return TreeText(stacks::make_tree(clusters)).run();
}

void write_stack_tree(JsonWriter& json, std::span<const StackCluster> clusters) {
  json.list("clusters", std::vector<StackCluster>(clusters.begin(), clusters.end()),
            [&](const StackCluster& c) {
              json.object([&] {
                json.values("frames", c.frames);
                json.values("ranks", c.ranks);
                json.field("healthy", c.healthy);
              });
            });
  const StackTree tree = stacks::make_tree(clusters);
  json.member("tree", [&] { write_nodes(json, tree, tree.roots, 0); });
}

}  // namespace culprit::cli
