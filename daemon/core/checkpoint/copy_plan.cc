#include "core/checkpoint/copy_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace culprit::checkpoint {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kReceivesMost = 2;

class Planner {
 public:
  Planner(uint32_t hosts, const std::vector<HostGroup>& groups) : n_(hosts), groups_(groups), of_(hosts) {
    for (uint32_t g = 0; g < groups.size(); ++g)
      for (const uint32_t host : groups[g].hosts) of_[host].push_back(g);
    for (auto& list : of_) {
      std::ranges::sort(list);
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }

  CopyPlan run() {
    start_with_rotation();
    for (uint32_t host = 0; host < n_; ++host)
      if (to_[host] == kNone) {
        std::vector<bool> tried(n_, false);
        (void)augment(host, tried);
      }
    for (uint32_t host = 0; host < n_; ++host)
      if (to_[host] == kNone) to_[host] = least_shared(host);
    return result();
  }

 private:
  // Each shared group counts by 1 / its hosts: a small one is taken out as a whole more often.
  double cost(uint32_t a, uint32_t b) const {
    double out = 0;
    each_shared(a, b, [&](uint32_t group) { out += 1.0 / static_cast<double>(groups_[group].hosts.size()); });
    return out;
  }
  bool shares(uint32_t a, uint32_t b) const {
    bool out = false;
    each_shared(a, b, [&](uint32_t) { out = true; });
    return out;
  }
  template <class Each>
  void each_shared(uint32_t a, uint32_t b, Each each) const {
    const auto &x = of_[a], &y = of_[b];
    for (size_t i = 0, j = 0; i < x.size() && j < y.size();) {
      if (x[i] == y[j])
        each(x[i]), ++i, ++j;
      else if (x[i] < y[j])
        ++i;
      else
        ++j;
    }
  }

  // Every host's partner is the host `shift` places on: hosts are listed in order of ranks, so one shift
  // often leaves all groups at once. Takes the shift with the most such hosts.
  void start_with_rotation() {
    uint32_t best = 1, most = 0;
    for (uint32_t shift = 1; shift < n_ && most < n_; ++shift) {
      uint32_t outside = 0;
      for (uint32_t host = 0; host < n_; ++host) outside += !shares(host, (host + shift) % n_);
      if (outside > most) best = shift, most = outside;
    }
    to_.assign(n_, kNone);
    from_.assign(n_, kNone);
    received_.assign(n_, 0);
    for (uint32_t host = 0; host < n_; ++host)
      if (const uint32_t to = (host + best) % n_; !shares(host, to)) give(host, to);
  }
  void give(uint32_t host, uint32_t to) {
    to_[host] = to;
    from_[to] = host;
    received_[to] = 1;
  }

  // Finds a partner that receives nothing yet, moving others if needed. Iterative depth-first search of an
  // augmenting path: a recursion could be thousands deep.
  bool augment(uint32_t start, std::vector<bool>& tried) {
    struct Step {
      uint32_t host, next;
    };
    std::vector<Step> path{{start, 0}};
    while (!path.empty()) {
      Step& step = path.back();
      const uint32_t to = (step.host + 1 + step.next) % n_;
      if (step.next >= n_ - 1) {
        path.pop_back();
        continue;
      }
      ++step.next;
      if (tried[to] || shares(step.host, to)) continue;
      tried[to] = true;
      if (from_[to] != kNone) {
        path.push_back({from_[to], 0});
        continue;
      }
      for (size_t i = path.size(); i-- > 0;) {
        const uint32_t host = path[i].host;
        give(host, (host + path[i].next) % n_);
      }
      return true;
    }
    return false;
  }

  // No host outside all groups is free: one outside that receives a second copy, else the least shared.
  uint32_t least_shared(uint32_t host) {
    uint32_t best = kNone;
    std::pair<double, uint32_t> least{0, 0};
    for (uint32_t step = 1; step < n_; ++step) {
      const uint32_t to = (host + step) % n_;
      if (received_[to] >= kReceivesMost) continue;
      const std::pair<double, uint32_t> price{cost(host, to), received_[to]};
      if (best == kNone || price < least) best = to, least = price;
    }
    ++received_[best];
    return best;
  }

  CopyPlan result() const {
    CopyPlan out;
    for (uint32_t host = 0; host < n_; ++host) {
      CopyPartner partner{to_[host], {}};
      each_shared(host, to_[host], [&](uint32_t group) {
        const std::string& kind = groups_[group].kind;
        if (std::ranges::find(partner.shared, kind) == partner.shared.end()) partner.shared.push_back(kind);
      });
      out.sharing += !partner.shared.empty();
      out.partners.push_back(std::move(partner));
    }
    for (const uint32_t n : received_) out.receives_most = std::max(out.receives_most, n);
    return out;
  }

  const uint32_t n_;
  const std::vector<HostGroup>& groups_;
  std::vector<std::vector<uint32_t>> of_;  // groups of each host
  std::vector<uint32_t> to_, from_, received_;
};

}  // namespace

Result<CopyPlan> plan_copies(uint32_t hosts, const std::vector<HostGroup>& groups) {
  if (hosts < 2) return fail(ErrorCode::kInvalid, "a copy needs a second host");
  if (hosts > kPlanHosts) return fail(ErrorCode::kLimit, fmt::format("more than {} hosts", kPlanHosts));
  for (const HostGroup& group : groups)
    for (const uint32_t host : group.hosts)
      if (host >= hosts)
        return fail(ErrorCode::kInvalid, fmt::format("group {} has a host beyond the list", group.kind));
  return Planner(hosts, groups).run();
}

Result<std::vector<HostGroup>> host_groups(const JobFile& job) {
  if (job.hosts.empty()) return fail(ErrorCode::kInvalid, "job.hosts is missing");
  if (!job.ranks_per_host || *job.ranks_per_host == 0)
    return fail(ErrorCode::kInvalid, "job.ranks_per_host is missing");
  const Parallel p = job.parallel.value_or(Parallel{});
  const uint64_t ranks = uint64_t{*job.ranks_per_host} * job.hosts.size();
  const std::array<std::pair<const char*, uint64_t>, 4> axes{
      {{"tp", p.tp}, {"cp", p.cp}, {"dp", p.dp}, {"pp", p.pp}}};
  uint64_t product = 1;
  for (const auto& [_, size] : axes) {
    if (size == 0 || size > ranks)
      return fail(ErrorCode::kInvalid, "an axis of [parallel] is 0 or too large");
    product *= size;
    if (product > ranks) break;
  }
  if (!job.parallel) return std::vector<HostGroup>{};
  if (product != ranks)
    return fail(ErrorCode::kInvalid,
                fmt::format("tp * cp * dp * pp of [parallel] must be {}, the ranks of all hosts", ranks));
  // The group of a rank along an axis: its number with that axis' coordinate as 0.
  std::map<std::pair<size_t, uint64_t>, std::vector<uint32_t>> found;
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    uint64_t stride = 1;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const uint64_t size = axes[axis].second;
      const uint64_t base = rank - (rank / stride % size) * stride;
      auto& hosts = found[{axis, base}];
      const auto host = static_cast<uint32_t>(rank / *job.ranks_per_host);
      if (hosts.empty() || hosts.back() != host) hosts.push_back(host);
      stride *= size;
    }
  }
  std::vector<HostGroup> out;
  std::map<std::pair<size_t, std::vector<uint32_t>>, bool> known;
  for (auto& [key, hosts] : found) {
    if (hosts.size() < 2 || std::exchange(known[{key.first, hosts}], true)) continue;
    out.push_back({axes[key.first].first, std::move(hosts)});
  }
  return out;
}

}  // namespace culprit::checkpoint
