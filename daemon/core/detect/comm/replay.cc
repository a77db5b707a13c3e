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
// Times that are compared across hosts are no finer (path.cc).
constexpr double kTogetherMs = 0.05;
constexpr double kShare = 0.01;  // of a step: less makes none irregular

class Replay {
 public:
  Replay(const Cluster& cluster, const Step& step) : cluster_(cluster), step_(step) {
    find_transfers();
    find_alone();
    find_order();
    if (ordered()) whole_ = run({});
    holds_ = ordered() && std::abs(whole_ - observed_ms()) < kAsObserved * observed_ms();
  }

  // Milliseconds that the step would be shorter by; negative: it cannot be told.
  double without(const Excess& excess) {
    if (!holds_) return -1;
    const double ms = std::max(0.0, whole_ - run(excess));
    // A wait whose record was lost stands there as work, and whoever it hides holds up all that follows.
    return ms < kShare * whole_ && has_lost() ? -1 : ms;
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

  // Whether numbers of a stream are missing between others.
  bool has_lost() const {
    for (uint32_t i = 0; i < step_.ranks.size(); ++i) {
      std::vector<uint64_t> next(cluster_.ranks()[step_.ranks[i]].slots.size(), 0);
      for (uint32_t k = step_.begin[i]; k < step_.begin[i + 1]; ++k) {
        const Op& op = step_.ops[k];
        if (next[op.slot] > 0 && op.seq > next[op.slot]) return true;
        next[op.slot] = op.seq + 1;
      }
    }
    return false;
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

  // Sends that left before their receiver came did not wait for him. Taken for waiting, ranks that send to
  // one another would wait for ever.
  void find_alone() {
    alone_.assign(step_.ops.size(), false);
    for (const Instance& i : step_.instances)
      for (uint32_t k = 0; k < i.count; ++k) {
        const uint32_t side = step_.sides[i.first + k], other = step_.sides[i.first + (k == 0 ? 1 : 0)];
        const Op& op = step_.ops[side];
        alone_[side] =
            op.op == CommOp::kSend && op.finished && i.count == 2 &&
            step_.aligned(cluster_, other, step_.ops[other].start) >= step_.aligned(cluster_, side, op.end);
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
            if (!alone_[m] && missing[step_.ops[m].instance] > 0) on = step_.ops[m].instance;
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
    if (!step_.ops[k].fused) return each(k);
    const uint32_t owner = step_.owner[k];
    const auto one = [this](uint32_t a, uint32_t b) {
      return step_.ops[a].fused && step_.ops[a].end == step_.ops[b].end;
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
      if (step_.ops[k].finished) end = std::max(end, end_alone(k, excess));
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
    const double took = took_[op.instance];
    if (span < took - kTogetherMs) return starts_[k] + span;  // it did not wait for the others
    const double slower =
        !excess.channels.empty() && excess.channels[instance.local] ? instance.slower_ms : 0;
    return alone_[k] ? starts_[k] + span - slower : latest_[op.instance] + took - slower;
  }

  const Cluster& cluster_;
  const Step& step_;
  std::vector<uint32_t> order_;
  std::vector<double> starts_, latest_;  // by operation, by instance
  std::vector<double> took_;             // by instance
  std::vector<bool> alone_;              // by operation
  int64_t origin_ = INT64_MIN;
  double whole_ = 0;
  bool holds_ = false;  // run again as it was it takes as long as it did
};

// Not to be told: what stands on the path, or where it led elsewhere, what the one that stands out most takes
// beyond its peers. Ranks that are late together are late at the same time.
void take_excess(const std::vector<uint32_t>& ranks, StepResult& step) {
  double on_path = 0, most = 0, sum = 0;
  for (const uint32_t i : ranks) {
    RankStep& r = step.ranks[i];
    on_path += std::max(0.f, r.path);
    if (r.path < kShare * step.step_ms) r.path = r.excess;
    most = std::max(most, double{r.excess});
    sum += std::max(0.f, r.path);
  }
  const double whole = std::max(on_path, most);
  for (const uint32_t i : ranks)
    if (sum > whole) step.ranks[i].path *= static_cast<float>(whole / sum);
}

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
      if (host == order[0].second) take_excess(accounts[host].ranks, step.result);
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
