// The ranks of a group, ascending, as runs with a constant step. A process group of any size has one or a few
// runs; the dump of each rank lists all groups. A plain value; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

namespace culprit {

class RankList {
 public:
  struct Run {
    uint32_t first = 0, step = 1, count = 0;
    auto operator<=>(const Run&) const = default;
  };

  RankList() = default;
  RankList(std::span<const uint32_t> ranks) {
    for (size_t i = 0; i < ranks.size();) {
      Run run{ranks[i], i + 1 < ranks.size() ? ranks[i + 1] - ranks[i] : 1, 1};
      for (++i; i < ranks.size() && ranks[i] - ranks[i - 1] == run.step; ++i) ++run.count;
      runs_.push_back(run);
    }
  }
  RankList(const std::vector<uint32_t>& ranks) : RankList(std::span(ranks)) {}
  RankList(std::initializer_list<uint32_t> ranks) : RankList(std::span(ranks.begin(), ranks.size())) {}

  // Appends a run of ranks above all earlier ones. `step` counts only for two or more ranks.
  void add(const Run& run) { runs_.push_back(run); }

  bool empty() const { return runs_.empty(); }
  size_t size() const {
    size_t out = 0;
    for (const Run& run : runs_) out += run.count;
    return out;
  }
  std::optional<uint32_t> at(size_t place) const {
    for (const Run& run : runs_) {
      if (place < run.count) return run.first + static_cast<uint32_t>(place) * run.step;
      place -= run.count;
    }
    return std::nullopt;
  }
  std::vector<uint32_t> all() const {
    std::vector<uint32_t> out;
    out.reserve(size());
    for (const Run& run : runs_)
      for (uint32_t i = 0; i < run.count; ++i) out.push_back(run.first + i * run.step);
    return out;
  }
  const std::vector<Run>& runs() const { return runs_; }
  auto operator<=>(const RankList&) const = default;

 private:
  std::vector<Run> runs_;
};

}  // namespace culprit
