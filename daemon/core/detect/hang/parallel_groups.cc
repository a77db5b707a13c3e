#include "core/detect/hang/parallel_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "base/limits.h"

namespace culprit::hang {
namespace {

using Members = std::vector<uint32_t>;

// Rank order: tensor varies fastest, then context, data, pipeline. Bits: the dimensions that vary in the
// group.
constexpr std::array<uint32_t, 7> kAxes = {0b0001, 0b0010, 0b0100, 0b1000, 0b0110, 0b1001, 0b0111};

class Layout {
 public:
  explicit Layout(const JobFile& job) {
    if (!job.parallel) return;
    const Parallel& p = *job.parallel;
    sizes_ = {std::max(1u, p.tp), std::max(1u, p.cp), std::max(1u, p.dp), std::max(1u, p.pp)};
    uint64_t product = 1;
    for (const uint32_t n : sizes_) product = product > limits::kCommRanks ? product : product * n;
    const uint64_t world = job.ranks_per_host ? uint64_t{job.hosts.size()} * *job.ranks_per_host : product;
    if (product == world && product <= limits::kCommRanks) world_ = static_cast<uint32_t>(product);
  }
  uint32_t world() const { return world_; }

  Members group(uint32_t rank, uint32_t axis) const {
    Members out = {0};
    uint32_t stride = 1;
    for (size_t d = 0; d < sizes_.size(); ++d) {
      const uint32_t own = rank / stride % sizes_[d];
      const bool varies = (axis >> d & 1) != 0;
      Members next;
      for (uint32_t i = varies ? 0 : own; i < (varies ? sizes_[d] : own + 1); ++i)
        for (const uint32_t base : out) next.push_back(base + i * stride);
      out = std::move(next);
      stride *= sizes_[d];
    }
    return out;  // ascending, because the strides are
  }

 private:
  std::array<uint32_t, 4> sizes_ = {1, 1, 1, 1};
  uint32_t world_ = 0;
};

class Completer {
 public:
  Completer(const JobFile& job, std::vector<Observation>& observations)
      : layout_(job), observations_(observations) {}

  void run() {
    if (layout_.world() == 0) return;
    // Groups of one kind have the same number within each process.
    std::map<std::string, std::vector<size_t>> kinds;
    for (size_t i = 0; i < observations_.size(); ++i) {
      const Observation& s = observations_[i];
      const bool named = !s.group.local.empty() || !s.group.key.empty();
      if (!s.rank || !s.group_rank || *s.rank >= layout_.world() || !named || !s.group.members.empty())
        continue;
      if (s.group.key == "0") continue;
      kinds[s.group.local.empty() ? "of " + s.group.description : s.group.local].push_back(i);
    }
    for (const auto& [kind, of] : kinds) complete(of);
  }

 private:
  void complete(const std::vector<size_t>& of) {
    std::vector<uint32_t> fitting;
    for (const uint32_t axis : kAxes)
      if (fits(of, axis)) fitting.push_back(axis);
    for (const uint32_t axis : fitting)
      for (const size_t i : of)
        if (members(*observations_[i].rank, axis) != members(*observations_[i].rank, fitting[0])) return;
    if (fitting.empty()) return;
    for (const size_t i : of) {
      Observation& s = observations_[i];
      const Members& ranks = members(*s.rank, fitting[0]);
      s.group.members = RankList(ranks);
      if (s.group.key.empty()) s.group.key = fmt::format("{}/{}", s.group.local, ranks[0]);
    }
  }

  bool fits(const std::vector<size_t>& of, uint32_t axis) {
    std::map<std::string, uint32_t> first_of_key;
    for (const size_t i : of) {
      const Observation& s = observations_[i];
      const Members& ranks = members(*s.rank, axis);
      if (ranks.size() < 2 || *s.group_rank >= ranks.size() || ranks[*s.group_rank] != *s.rank) return false;
      if (s.group.size != 0 && s.group.size != ranks.size()) return false;
      if (s.group.key.empty()) continue;
      if (first_of_key.try_emplace(s.group.key, ranks[0]).first->second != ranks[0]) return false;
    }
    return true;
  }

  const Members& members(uint32_t rank, uint32_t axis) {
    const auto known = first_.find({rank, axis});
    if (known != first_.end()) return lists_[{known->second, axis}];
    Members ranks = layout_.group(rank, axis);
    const uint32_t first = ranks[0];
    for (const uint32_t member : ranks) first_[{member, axis}] = first;
    return lists_[{first, axis}] = std::move(ranks);
  }

  const Layout layout_;
  std::vector<Observation>& observations_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> first_;
  std::map<std::pair<uint32_t, uint32_t>, Members> lists_;
};

}  // namespace

void complete_groups(const JobFile& job, std::vector<Observation>& observations) {
  Completer(job, observations).run();
}

}  // namespace culprit::hang
