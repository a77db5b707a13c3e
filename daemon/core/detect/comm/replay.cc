// Replay: the length of a step without some excess. Operations run again in the order of their dependencies,
// each with its recorded duration, without the given excess.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/detect/comm/step.h"

namespace culprit::comm {
namespace {

// A replay that misses the step's recorded length by more than this share is not used.
constexpr double kAsObserved = 0.05;
constexpr double kShare = 0.01;  // share of a step: a smaller cost makes no step irregular

class Replay {
 public:
  Replay(const Cluster& cluster, const Step& step) : cluster_(cluster), step_(step) {
    find_transfers();
    list_entries();
    find_order();
    if (!ordered()) return;
    whole_ = run({});
    holds_ = std::abs(whole_ - observed_ms()) < kAsObserved * observed_ms();
  }

  // Milliseconds that the step would be shorter; negative: unknown.
  double without(const Excess& excess) {
    if (!holds_) return -1;
    const double ms = std::max(0.0, whole_ - run(excess));
    // A wait with a lost record looks like work here, and the rank behind it delays all that follow.
    return ms < kShare * whole_ && has_lost() ? -1 : ms;
  }

 private:
  enum class After : uint8_t { kNothing, kStart, kEnd, kEnds };

  // An operation: its entry, and what determines its end.
  struct Entry {
    uint32_t after = kNone;  // an operation; for kEnds: an index into launches_
    uint32_t instance = kNone;
    uint32_t end = kNone;         // index of its end: its instance, or an additional end of its own
    uint32_t waited_for = kNone;  // as Op::waited_for; after_ms counts from there
    float gap_ms = 0, excess_ms = 0, after_ms = 0;
    After how = After::kNothing;
    bool alone = false;  // as Op::alone
  };

  // Last entry of the sides that leave together (or of one that does not wait), and the time from there.
  // Milliseconds.
  struct End {
    double entry = 0, took = 0;
  };

  struct Launch {
    uint32_t from = 0, to = 0;  // operations
  };

  bool ordered() const { return order_.size() == step_.ops.size(); }

  double observed_ms() const { return kMsPerNs * static_cast<double>(last_ns_ - first_ns_); }

  // Whether sequence numbers of a stream have gaps.
  bool has_lost() {
    if (!lost_) lost_ = find_lost();
    return *lost_;
  }

  bool find_lost() const {
    std::vector<uint64_t> next;
    for (uint32_t i = 0; i < step_.ranks.size(); ++i) {
      next.assign(cluster_.ranks()[step_.ranks[i]].slots.size(), 0);
      for (uint32_t k = step_.begin[i]; k < step_.begin[i + 1]; ++k) {
        const Op& op = step_.ops[k];
        if (next[op.slot] > 0 && op.seq > next[op.slot]) return true;
        next[op.slot] = op.seq + 1;
      }
    }
    return false;
  }

  int64_t entered_ns(const Op& op) const {
    return step_.aligned(op.waited_for, step_.ops[op.waited_for].start);
  }
  static double span_ms(const Op& op) { return kMsPerNs * static_cast<double>(op.end - op.start); }

  // Durations once all sides had entered. With missing sides: the shortest recorded side, or the shortest
  // duration of the channel. The wait for a missing rank is left out.
  void find_transfers() {
    took_.reserve(2 * step_.instances.size());
    std::vector<double> least(step_.channels.size(), INFINITY);
    for (const Instance& i : step_.instances)
      if (i.transfer_ms >= 0) least[i.local] = std::min(least[i.local], i.transfer_ms);
    for (const Instance& i : step_.instances) {
      took_.push_back(i.transfer_ms);
      if (i.transfer_ms >= 0) continue;
      double span = INFINITY;
      for (uint32_t k = 0; k < i.count; ++k)
        span = std::min(span, span_ms(step_.ops[step_.sides[i.first + k]]));
      took_.back() = i.count > 1 ? span : std::min(span, std::isfinite(least[i.local]) ? least[i.local] : 0);
    }
    counts_.resize(took_.size());
  }

  void list_entries() {
    entries_.resize(step_.ops.size());
    for (uint32_t k = 0; k < entries_.size(); ++k) {
      const Op& op = step_.ops[k];
      first_ns_ = std::min(first_ns_, step_.aligned(k, op.start));
      last_ns_ = std::max(last_ns_, step_.aligned(k, op.end));
      Entry& entry = entries_[k];
      if (!std::isnan(op.gap_ms)) entry.gap_ms = op.gap_ms;
      if (op.excess_ms > 0) entry.excess_ms = std::min(op.excess_ms, op.gap_ms);
      entry.end = entry.instance = op.instance;
      entry.alone = op.alone;
      entry.waited_for = op.waited_for;
      if (op.waited_for != kNone)
        entry.after_ms =
            static_cast<float>(kMsPerNs * static_cast<double>(step_.aligned(k, op.start) - entered_ns(op)));
      if (const double span = span_ms(op); op.alone || span < took_[op.instance] - kTogetherMs) {
        entry.end = static_cast<uint32_t>(took_.size());
        took_.push_back(span);
        counts_.push_back(false);
      }
      if (op.finished) counts_[entry.end] = true;
      find_after(k);
    }
  }

  void find_after(uint32_t k) {
    const Op& op = step_.ops[k];
    Entry& entry = entries_[k];
    if (op.launch != k) {
      entry.after = op.launch;
      entry.how = After::kStart;
      return;
    }
    entry.after = op.before;
    if (op.before == kNone) return;
    const Op& before = step_.ops[op.before];
    entry.how = before.background && op.before != op.awaited ? After::kStart
                : before.fused                               ? After::kEnds
                                                             : After::kEnd;
    if (entry.how != After::kEnds) return;
    entry.after = static_cast<uint32_t>(launches_.size());
    launches_.push_back(launch_of(op.before));
  }

  // The launch of an operation: its operations begin together, and end with the last of them.
  Launch launch_of(uint32_t k) const {
    Launch out{step_.ops[k].launch, k + 1};
    while (out.to < step_.begin[step_.owner[k] + 1] && step_.ops[out.to].launch == out.from) ++out.to;
    return out;
  }

  // The instance that an operation waits for and that some rank has not entered; kNone: none.
  uint32_t waits_for(const Entry& entry, const std::vector<uint32_t>& missing) const {
    if (entry.how != After::kEnd && entry.how != After::kEnds) return kNone;
    const Launch all =
        entry.how == After::kEnds ? launches_[entry.after] : Launch{entry.after, entry.after + 1};
    for (uint32_t m = all.from; m < all.to; ++m)
      if (const Entry& e = entries_[m]; !e.alone && missing[e.instance] > 0) return e.instance;
    return kNone;
  }

  // Orders the operations: each rank continues until it waits for a rank that has not entered.
  void find_order() {
    const auto ranks = static_cast<uint32_t>(step_.ranks.size());
    order_.reserve(step_.ops.size());
    std::vector<uint32_t> next(step_.begin.begin(), step_.begin.end() - 1), ready(ranks);
    std::vector<uint32_t> missing(step_.instances.size());
    // Linked lists of waiting ranks: by instance the last one, by rank the one before it.
    std::vector<uint32_t> waiting(step_.instances.size(), kNone), earlier(ranks, kNone);
    // Awaited operation and waiting rank (hidden waits); few.
    std::vector<std::pair<uint32_t, uint32_t>> hidden;
    for (size_t i = 0; i < missing.size(); ++i) missing[i] = step_.instances[i].count;
    for (uint32_t i = 0; i < ranks; ++i) ready[i] = ranks - 1 - i;
    while (!ready.empty()) {
      const uint32_t rank = ready.back();
      ready.pop_back();
      for (; next[rank] < step_.begin[rank + 1]; ++next[rank]) {
        const uint32_t k = next[rank];
        if (const uint32_t on = waits_for(entries_[k], missing); on != kNone) {
          earlier[rank] = std::exchange(waiting[on], rank);
          break;
        }
        if (const uint32_t e = entries_[k].waited_for; e != kNone && next[step_.owner[e]] <= e) {
          hidden.emplace_back(e, rank);
          break;
        }
        order_.push_back(k);
        for (const auto& [entered, waits] : hidden)
          if (entered == k) ready.push_back(waits);
        std::erase_if(hidden, [k](const auto& h) { return h.first == k; });
        const uint32_t instance = entries_[k].instance;
        if (--missing[instance] > 0) continue;
        for (uint32_t r = std::exchange(waiting[instance], kNone); r != kNone; r = earlier[r])
          ready.push_back(r);
      }
    }
  }

  // Length of the step; times are milliseconds from the first entry.
  double run(const Excess& excess) {
    begin(excess);
    for (const uint32_t k : order_) {
      const Entry& entry = entries_[k];
      double at = after(k, entry) + entry.gap_ms;
      const bool waited = entry.waited_for != kNone;
      if (waited || (excess.host != kNone && left_out_[step_.owner[k]])) at -= entry.excess_ms;
      if (waited) at = std::max(at, starts_[entry.waited_for] + entry.after_ms);
      starts_[k] = at;
      ends_[entry.instance].entry = std::max(ends_[entry.instance].entry, at);
      if (entry.end != entry.instance) ends_[entry.end].entry = at;
    }
    double last = 0;
    for (size_t n = 0; n < ends_.size(); ++n)
      if (counts_[n]) last = std::max(last, ends_[n].entry + ends_[n].took);
    return last;
  }

  void begin(const Excess& excess) {
    starts_.resize(entries_.size());
    ends_.resize(took_.size());
    for (size_t n = 0; n < ends_.size(); ++n)
      ends_[n] = {n < step_.instances.size() ? -INFINITY : 0, took_[n]};
    for (uint32_t n = 0; n < step_.instances.size() && !excess.channels.empty(); ++n) {
      const Instance& i = step_.instances[n];
      if (!excess.channels[i.local] || i.slower_ms == 0) continue;
      ends_[n].took -= i.slower_ms;
      for (uint32_t s = 0; s < i.count; ++s)
        if (const Entry& entry = entries_[step_.sides[i.first + s]];
            entry.alone && took_[entry.end] >= took_[n] - kTogetherMs)
          ends_[entry.end].took -= i.slower_ms;
    }
    if (excess.host == kNone) return;
    left_out_.resize(step_.ranks.size());
    for (uint32_t i = 0; i < left_out_.size(); ++i)
      left_out_[i] = cluster_.ranks()[step_.ranks[i]].host == excess.host &&
                     step_.result.ranks[i].excess > kShare * step_.result.step_ms;
  }

  double after(uint32_t k, const Entry& entry) const {
    switch (entry.how) {
      case After::kNothing:
        return kMsPerNs * static_cast<double>(step_.aligned(k, step_.ops[k].start) - first_ns_) -
               entries_[k].gap_ms;
      case After::kStart:
        return starts_[entry.after];
      case After::kEnd:
        return at_end(entry.after);
      case After::kEnds:
        break;
    }
    double last = -INFINITY;
    for (uint32_t m = launches_[entry.after].from; m < launches_[entry.after].to; ++m)
      last = std::max(last, at_end(m));
    return last;
  }

  double at_end(uint32_t k) const {
    const End& end = ends_[entries_[k].end];
    return end.entry + end.took;
  }

  const Cluster& cluster_;
  const Step& step_;
  std::vector<Entry> entries_;  // by operation
  std::vector<Launch> launches_;
  std::vector<uint32_t> order_;
  // By end, instances first: duration, and whether any side finished.
  std::vector<double> took_;
  std::vector<bool> counts_;
  int64_t first_ns_ = INT64_MAX, last_ns_ = INT64_MIN;  // of all entries and exits
  std::optional<bool> lost_;
  double whole_ = 0;
  bool holds_ = false;  // the replay without changes reproduces the recorded length
  // State of the current run:
  std::vector<double> starts_;  // by operation
  std::vector<End> ends_;
  std::vector<bool> left_out_;  // by rank: its excess is left out
};

// Estimate without a valid replay: the path's share, or the largest excess if the path led elsewhere. Delays
// of several ranks overlap, so their costs do not add up.
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
  // Number of hosts examined, by excess and path. Both count, because a lost record may mislead the path.
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
