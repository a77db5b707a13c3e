#include "core/detect/logs/forest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/hash.h"

namespace culprit::detect {
namespace {

using Rows = std::vector<std::vector<double>>;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() { return mix64(state_++, 0x5eed); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  size_t below(size_t n) { return static_cast<size_t>(unit() * static_cast<double>(n)); }

 private:
  uint64_t state_;
};

struct Node {
  int32_t column = -1;  // -1: a leaf
  double cut = 0;
  uint32_t left = 0, right = 0;
  uint32_t size = 0;
};

// Mean depth of an unsuccessful search in a binary tree of n points.
double mean_depth(double n) {
  return n <= 1 ? 0 : n == 2 ? 1 : 2 * (std::log(n - 1) + 0.5772156649) - 2 * (n - 1) / n;
}

class Tree {
 public:
  Tree(const Rows& rows, std::vector<uint32_t> sample, Random& random) : rows_(rows) {
    depth_max_ = static_cast<uint32_t>(std::ceil(std::log2(std::max<size_t>(2, sample.size()))));
    grow(std::move(sample), 0, random);
  }

  // Depth at which `row` ends. Each cut on the path credits its column; a cut that separates the row from
  // more points gets more credit.
  double depth(const std::vector<double>& row, std::vector<double>* credit) const {
    uint32_t at = 0;
    double depth = 0;
    while (nodes_[at].column >= 0) {
      const Node& node = nodes_[at];
      const uint32_t next = row[static_cast<size_t>(node.column)] < node.cut ? node.left : node.right;
      if (credit)
        (*credit)[static_cast<size_t>(node.column)] +=
            1 - static_cast<double>(nodes_[next].size) / static_cast<double>(node.size);
      at = next;
      ++depth;
    }
    return depth + mean_depth(nodes_[at].size);
  }

 private:
  uint32_t grow(std::vector<uint32_t> sample, uint32_t depth, Random& random) {
    const auto id = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
    nodes_[id].size = static_cast<uint32_t>(sample.size());
    if (depth >= depth_max_ || sample.size() <= 1) return id;
    // A column of equal values separates nothing, so try several columns.
    for (int attempt = 0; attempt < 16; ++attempt) {
      const size_t column = random.below(rows_[sample[0]].size());
      double low = rows_[sample[0]][column], high = low;
      for (uint32_t r : sample)
        low = std::min(low, rows_[r][column]), high = std::max(high, rows_[r][column]);
      if (low == high) continue;
      const double cut = low + (high - low) * std::max(1e-9, random.unit());
      std::vector<uint32_t> left, right;
      for (uint32_t r : sample) (rows_[r][column] < cut ? left : right).push_back(r);
      nodes_[id].column = static_cast<int32_t>(column);
      nodes_[id].cut = cut;
      const uint32_t l = grow(std::move(left), depth + 1, random);
      nodes_[id].left = l;
      const uint32_t r = grow(std::move(right), depth + 1, random);
      nodes_[id].right = r;
      return id;
    }
    return id;
  }

  const Rows& rows_;
  uint32_t depth_max_ = 0;
  std::vector<Node> nodes_;
};

std::vector<uint32_t> draw(size_t rows, size_t wanted, Random& random) {
  std::vector<uint32_t> all(rows);
  std::iota(all.begin(), all.end(), 0u);
  for (size_t i = 0; i < wanted; ++i) std::swap(all[i], all[i + random.below(rows - i)]);
  all.resize(wanted);
  return all;
}

}  // namespace

ForestResult isolation_forest(const Rows& rows, const ForestOptions& options, double attribute_above) {
  ForestResult out;
  if (rows.size() < 2 || rows[0].empty()) {
    out.score.assign(rows.size(), 0.5);
    out.attribution.resize(rows.size());
    return out;
  }
  Random random(options.seed);
  const size_t sample = std::min<size_t>(options.sample, rows.size());
  std::vector<Tree> trees;
  trees.reserve(options.trees);
  for (uint32_t t = 0; t < options.trees; ++t)
    trees.emplace_back(rows, draw(rows.size(), sample, random), random);
  const double usual = mean_depth(static_cast<double>(sample));
  out.attribution.resize(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    double sum = 0;
    for (const Tree& tree : trees) sum += tree.depth(rows[r], nullptr);
    out.score.push_back(std::pow(2.0, -sum / options.trees / usual));
    if (out.score.back() < attribute_above) continue;
    std::vector<double> credit(rows[r].size(), 0);
    for (const Tree& tree : trees) tree.depth(rows[r], &credit);
    const double total = std::accumulate(credit.begin(), credit.end(), 0.0);
    for (double& c : credit) c = total > 0 ? c / total : 0;
    out.attribution[r] = std::move(credit);
  }
  return out;
}

}  // namespace culprit::detect
