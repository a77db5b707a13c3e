// What a step would have taken without something: its operations run again in the order of what they waited
// for, each as long as it took, without the excess that is asked about.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/detect/comm/step.h"

namespace culprit::comm {
namespace {

constexpr double kMs = 1e-6;  // of a nanosecond
// A replay that misses the step's own length by more says nothing of what else it might have been.
constexpr double kAsObserved = 0.05;
constexpr double kShare = 0.01;  // of a step: less makes none irregular

class Replay {
 public:
  Replay(const Cluster& cluster, const Step& step) : cluster_(cluster), step_(step) {
    find_transfers();
    find_order();
    if (ordered()) whole_ = run({});
    holds_ = ordered() && std::abs(whole_ - observed_ms()) < kAsObserved * observed_ms();
  }

  // Milliseconds that the step would be shorter by; negative: it cannot be told.
  double without(const Excess& excess) {
    if (!holds_) return -1;
    return std::max(0.0, whole_ - run(excess));
  }

 private:
  bool ordered() const { return order_.size() == step_.ops.size(); }

  double observed_ms() const {
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (uint32_t k = 0; k < step_.ops.size(); ++k) {
      first = std::min(first, step_.aligned(cluster_, k, step_.ops[k].start));
      last = std::max(last, step_.aligned(cluster_, k, step_.ops[k].end));
    }
    return kMs * static_cast<double>(last - first);
  }

  // What an operation took when all were there. Where some are not recorded it is what those that are had in
  // common, or what others of the channel took: the wait for one who is not there is left out.
  void find_transfers() {
    took_.resize(step_.instances.size());
    std::vector<double> least(step_.channels.size(), INFINITY);
    for (const Instance& i : step_.instances)
      if (i.transfer_ms >= 0) least[i.local] = std::min(least[i.local], i.transfer_ms);
    for (size_t n = 0; n < took_.size(); ++n) {
      const Instance& i = step_.instances[n];
      took_[n] = i.transfer_ms;
      if (i.transfer_ms >= 0) continue;
      double span = INFINITY;
      for (uint32_t k = 0; k < i.count; ++k) {
        const Op& op = step_.ops[step_.sides[i.first + k]];
        span = std::min(span, kMs * static_cast<double>(op.end - op.start));
      }
      took_[n] = i.count > 1 ? span : std::min(span, std::isfinite(least[i.local]) ? least[i.local] : 0);
    }
  }

  // Ranks go on until they wait for somebody who has not come yet, as they did.
  void find_order() {
    const size_t ranks = step_.ranks.size();
    order_.reserve(step_.ops.size());
    std::vector<uint32_t> next(step_.begin.begin(), step_.begin.end() - 1), ready(ranks);
    std::vector<uint32_t> missing(step_.instances.size());
    std::vector<std::vector<uint32_t>> waiting(step_.instances.size());
    for (size_t i = 0; i < missing.size(); ++i) missing[i] = step_.instances[i].count;
    for (uint32_t i = 0; i < ranks; ++i) ready[i] = static_cast<uint32_t>(ranks) - 1 - i;
    while (!ready.empty()) {
      const uint32_t rank = ready.back();
      ready.pop_back();
      for (; next[rank] < step_.begin[rank + 1]; ++next[rank]) {
        const uint32_t k = next[rank];
        uint32_t on = kNone;
        if (by_end(step_.ops[k]))
          launched_with(step_.ops[k].before, [&](uint32_t m) {
            if (missing[step_.ops[m].instance] > 0) on = step_.ops[m].instance;
          });
        if (on != kNone) {
          waiting[on].push_back(rank);
          break;
        }
        order_.push_back(k);
        const uint32_t instance = step_.ops[k].instance;
        if (--missing[instance] > 0) continue;
        ready.insert(ready.end(), waiting[instance].begin(), waiting[instance].end());
        waiting[instance].clear();
      }
    }
  }

  bool by_end(const Op& op) const {
    return op.before != kNone && (!step_.ops[op.before].background || op.before == op.awaited);
  }

  // What was launched as one ends as one: with the last of it.
  template <class Each>
  void launched_with(uint32_t k, Each each) const {
    const uint32_t owner = step_.owner[k];
    const auto one = [this](uint32_t a, uint32_t b) {
      return step_.ops[a].fused && step_.ops[b].fused && step_.ops[a].end == step_.ops[b].end;
    };
    uint32_t first = k;
    while (first > step_.begin[owner] && one(first - 1, k)) --first;
    for (uint32_t m = first; m < step_.begin[owner + 1] && (m <= k || one(m, k)); ++m) each(m);
  }

  // Times in milliseconds from the first entry.
  double run(const Excess& excess) {
    starts_.assign(step_.ops.size(), 0);
    latest_.assign(step_.instances.size(), -INFINITY);
    double end = 0;
    for (const uint32_t k : order_) {
      const Op& op = step_.ops[k];
      double at = 0;
      if (op.before != kNone) at = by_end(op) ? end_of(op.before, excess) : starts_[op.before];
      if (op.before == kNone) at = first_ms(k);
      if (!std::isnan(op.gap_ms)) at += op.gap_ms;
      if (left_out(k, excess) && op.excess_ms > 0) at -= std::min(op.excess_ms, op.gap_ms);
      starts_[k] = at;
      latest_[op.instance] = std::max(latest_[op.instance], at);
    }
    for (const uint32_t k : order_)
      if (step_.ops[k].finished) end = std::max(end, end_of(k, excess));
    return end;
  }

  bool left_out(uint32_t k, const Excess& excess) const {
    if (excess.host == kNone) return false;
    const RankStep& r = step_.result.ranks[step_.owner[k]];
    return cluster_.ranks()[r.rank].host == excess.host && r.excess > kShare * step_.result.step_ms;
  }

  double first_ms(uint32_t k) {
    const Op& op = step_.ops[k];
    if (origin_ == INT64_MIN) origin_ = step_.aligned(cluster_, k, op.start);
    const double at = kMs * static_cast<double>(step_.aligned(cluster_, k, op.start) - origin_);
    return std::isnan(op.gap_ms) ? at : at - op.gap_ms;
  }

  double end_of(uint32_t k, const Excess& excess) const {
    double end = -INFINITY;
    launched_with(k, [&](uint32_t m) { end = std::max(end, end_alone(m, excess)); });
    return end;
  }

  double end_alone(uint32_t k, const Excess& excess) const {
    const Op& op = step_.ops[k];
    const Instance& instance = step_.instances[op.instance];
    const double span = kMs * static_cast<double>(op.end - op.start);
    double took = took_[op.instance];
    if (span < took) return starts_[k] + span;  // it did not wait for the others
    if (!excess.channels.empty() && excess.channels[instance.local]) took -= instance.slower_ms;
    return latest_[op.instance] + took;
  }

  const Cluster& cluster_;
  const Step& step_;
  std::vector<uint32_t> order_;
  std::vector<double> starts_, latest_;  // by operation, by instance
  std::vector<double> took_;             // by instance
  int64_t origin_ = INT64_MIN;
  double whole_ = 0;
  bool holds_ = false;  // run again as it was it takes as long as it did
};

}  // namespace

void replay_costs(const Cluster& cluster, Step& step) {
  // Hosts on whose account the step may be longer: of many the others are not what anyone would look at.
  // Those on the path, and those whose excess is large: where a record was lost the path may lead elsewhere.
  constexpr size_t kHosts = 3;
  struct Account {
    double most = 0, excess = 0;
    std::vector<uint32_t> ranks;
  };
  std::map<uint32_t, Account> accounts;
  for (uint32_t i = 0; i < step.result.ranks.size(); ++i) {
    const RankStep& r = step.result.ranks[i];
    const uint32_t host = cluster.ranks()[r.rank].host;
    if (host == kNone || r.excess <= kShare * step.result.step_ms) continue;
    Account& account = accounts[host];
    account.most = std::max(account.most, double{r.excess} + std::max(0.f, r.path));
    account.excess += r.excess;
    account.ranks.push_back(i);
  }
  std::vector<std::pair<double, uint32_t>> order;
  for (const auto& [host, account] : accounts)
    if (account.most > 2 * kShare * step.result.step_ms) order.emplace_back(-account.most, host);
  std::sort(order.begin(), order.end());
  if (order.size() > kHosts) order.resize(kHosts);
  if (order.empty() && step.result.network.empty()) return;
  Replay replay(cluster, step);
  for (const auto& [most, host] : order) {
    Excess excess;
    excess.host = host;
    const double ms = replay.without(excess);
    if (ms < 0) {
      // Not to be told: what stands on the path, or where it led elsewhere, what the one that stands out most
      // takes beyond its peers.
      if (host == order[0].second)
        for (const uint32_t i : accounts[host].ranks)
          if (RankStep& r = step.result.ranks[i]; r.path < kShare * step.result.step_ms) r.path = r.excess;
      continue;
    }
    for (const uint32_t i : accounts[host].ranks) {
      RankStep& r = step.result.ranks[i];
      r.path = static_cast<float>(ms * r.excess / accounts[host].excess);
    }
  }
  for (NetEffect& effect : step.result.network) {
    Excess excess;
    excess.channels.assign(step.channels.size(), false);
    for (const uint32_t c : effect.channels) excess.channels[c] = true;
    if (const double ms = replay.without(excess); ms >= 0) effect.cost = ms;
  }
}

}  // namespace culprit::comm
