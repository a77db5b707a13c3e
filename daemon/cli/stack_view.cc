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

constexpr size_t kRunsShown = 24;     // of a set of ranks
constexpr size_t kTreeDepthMax = 64;  // chains within chains; deeper ones are cut
constexpr size_t kBoxesMax = 400;     // of the picture: more are too narrow to see
constexpr double kBoxHeight = 20, kPictureWidth = 1000;
// Share of the picture's width for ranks that differ, however few they are.
constexpr double kOutlierShare = 0.25;

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

// Boxes from the outermost frames at the top down to the innermost ones.
class Icicle {
 public:
  Icicle(Html& html, const StackTree& tree) : html_(html), tree_(tree), weights_(tree.nodes.size()) {}

  void run() {
    double whole = 0;
    for (const TreeNode& node : tree_.nodes)
      largest_ = std::max(largest_, static_cast<double>(node.ranks.size()));
    for (const size_t root : tree_.roots) whole += weigh(root, 0);
    if (whole <= 0) return;
    unit_ = kPictureWidth / whole;
    html_.raw(
        fmt::format("<svg width=\"100%\" height=\"{}\" role=\"img\"><title>Stacks of all ranks, the "
                    "outermost frames at the top; coloured where ranks differ</title>",
                    static_cast<int>(kBoxHeight * static_cast<double>(deepest_ + 1))));
    double x = 0;
    for (const size_t root : tree_.roots) {
      draw(root, x, 0);
      x += weights_[root];
    }
    html_.raw("</svg>\n");
    if (boxes_ > kBoxesMax)
      html_.element("p", "soft", fmt::format("{} further boxes are not drawn", boxes_ - kBoxesMax));
  }

 private:
  double weigh(size_t at, size_t depth) {
    const TreeNode& node = tree_.nodes[at];
    deepest_ = std::max(deepest_, depth);
    double own = static_cast<double>(node.ranks.size());
    if (node.outliers > 0) own = std::max(own, kOutlierShare * largest_);
    double below = 0;
    if (depth < kTreeDepthMax)
      for (const size_t child : node.children) below += weigh(child, depth + 1);
    return weights_[at] = std::max({own, below, 1e-9});
  }

  void draw(size_t at, double x, size_t depth) {
    const TreeNode& node = tree_.nodes[at];
    if (++boxes_ <= kBoxesMax) box(node, x * unit_, weights_[at] * unit_, depth);
    if (depth >= kTreeDepthMax) return;
    for (const size_t child : node.children) {
      draw(child, x, depth + 1);
      x += weights_[child];
    }
  }

  void box(const TreeNode& node, double x, double width, size_t depth) {
    const double share = 100 / kPictureWidth;
    html_.raw(
        fmt::format("<svg class=\"axis\" x=\"{:.2f}%\" y=\"{}\" width=\"{:.2f}%\" height=\"{}\"><title>",
                    x * share, static_cast<int>(kBoxHeight * static_cast<double>(depth)),
                    std::max(0.05, width * share - 0.1), static_cast<int>(kBoxHeight) - 1));
    html_.text(fmt::format("{}: ranks {}", rank_count(node), stacks::rank_ranges(node.ranks, kRunsShown)));
    for (const std::string& frame : node.frames) html_.text("\n" + frame);
    html_.raw(fmt::format("</title><rect class=\"{}\" width=\"100%\" height=\"100%\"/>",
                          differs(node) ? "x1" : "l0"));
    html_.raw(differs(node) ? "<text class=\"out\" x=\"4\" y=\"13\">" : "<text x=\"4\" y=\"13\">")
        .text(label(node))
        .raw("</text></svg>\n");
  }

  static std::string label(const TreeNode& node) {
    const std::string& last = node.frames.back();
    return fmt::format("{}  [{}]", last.substr(last.rfind('/') + 1), stacks::rank_ranges(node.ranks, 4));
  }

  Html& html_;
  const StackTree& tree_;
  std::vector<double> weights_;
  double unit_ = 1, largest_ = 0;
  size_t deepest_ = 0, boxes_ = 0;
};

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

void draw_stacks(Html& html, std::span<const StackCluster> clusters) {
  const StackTree tree = stacks::make_tree(clusters);
  if (tree.roots.empty()) return;
  Icicle(html, tree).run();
}

}  // namespace culprit::cli
