// Replay: computes a step's length without a given excess. It simulates the operations in dependency order,
// each with its recorded duration.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/detect/comm/step.h"

namespace culprit::comm {
namespace {

// A replay that misses the step's recorded length by more than this share is not used.
constexpr double kAsObserved = 0.05;
constexpr double kShare = 0.01;  // share of a step: a smaller cost makes no step irregular

// What a replay removes from a step.
struct Excess {
  uint32_t host = kNone;       // remove the excess of this host's ranks
  std::vector<bool> channels;  // by Instance::local: remove the slowdown of these operations
};
// Number of hosts examined; an entry has a bit for each.
constexpr size_t kHosts = 3;

// Runs several replays in parallel lanes: they share the order of operations, and memory latency dominates
// the time.
class Replay {
 public:
  // At most kHosts hosts are among the excesses.
  Replay(const Cluster& cluster, const Step& step, const std::vector<Excess>& excesses)
      : cluster_(cluster), step_(step) {
    list_hosts(excesses);
    find_transfers();
    list_entries();
    constexpr size_t kLanes = 4;  // an operation's entry and end then take two cache lines
    std::vector<const Excess*> all{nullptr};
    for (const Excess& excess : excesses) all.push_back(&excess);
    for (size_t i = 0; i < all.size() && (i == 0 || holds_); i += kLanes) {
      const std::span<const Excess* const> some{&all[i], std::min(kLanes, all.size() - i)};
      const bool more = i + kLanes < all.size();
      if (!(some.size() <= 2 ? play<2>(some, more) : play<kLanes>(some, more))) return;
      holds_ = std::abs(lengths_[0] - observed_ms()) < kAsObserved * observed_ms();
    }
  }

  // Milliseconds that the step would be shorter without the i-th excess; negative: unknown.
  double without(size_t i) {
    if (!holds_) return -1;
    const double whole = lengths_[0], ms = std::max(0.0, whole - lengths_[i + 1]);
    // A wait with a lost record counts as work here; its rank then delays all later operations.
    return ms < kShare * whole && has_lost() ? -1 : ms;
  }

 private:
  enum class After : uint8_t { kNothing, kStart, kEnd, kEnds };

  // An operation: its entry, and what determines its end.
  struct Entry {
    uint32_t after = kNone;  // an operation; for kStart: an index of starts; for kEnds: an index of launches_
    uint32_t instance = kNone;
    uint32_t end = kNone;    // index of its end: its instance, or an end of its own
    uint32_t start = kNone;  // index of its start, if another operation begins after it
    float gap_ms = 0, excess_ms = 0;
    After how = After::kNothing;
    uint8_t hosts = 0;    // bits of hosts_ whose excess includes it
    bool alone = false;   // as Op::alone
    bool waited = false;  // waits_ has it
  };

  struct Launch {
    uint32_t from = 0, to = 0;  // operations
  };
  // A hidden wait (Op::waited_for); after_ms: time since the entry of the awaited operation.
  struct Wait {
    uint32_t op = kNone, start = kNone;
    float after_ms = 0;
  };

  void list_hosts(const std::vector<Excess>& excesses) {
    for (const Excess& excess : excesses)
      if (excess.host != kNone) hosts_.push_back(excess.host);
    CULPRIT_DCHECK(hosts_.size() <= kHosts);
  }

  // Bit of the rank's host, if the rank's excess is worth removing.
  uint8_t host_bits(uint32_t i) const {
    const uint32_t host = cluster_.ranks()[step_.ranks[i]].host;
    if (host == kNone || !(step_.result.ranks[i].excess > kShare * step_.result.step_ms)) return 0;
    uint8_t bits = 0;
    for (size_t h = 0; h < hosts_.size(); ++h) bits |= static_cast<uint8_t>((hosts_[h] == host) << h);
    return bits;
  }

  // Replays the step without each of these excesses. The first call determines the order and stores it if
  // `more` calls follow. Returns false on a circular wait.
  template <size_t kLanes>
  bool play(std::span<const Excess* const> excesses, bool more) {
    Run<kLanes> run(*this, excesses);
    if (!lengths_.empty()) {
      for (const uint32_t k : order_) run.enter(k);
    } else {
      if (more) order_.reserve(step_.ops.size());
      size_t n = 0;
      const auto enter = [&](uint32_t k) {
        run.enter(k);
        if (more) order_.push_back(k);
        ++n;
      };
      visit_in_order([&](uint32_t k) { run.prefetch(k); }, enter);
      if (n < step_.ops.size()) return false;
    }
    run.add_lengths(lengths_);
    return true;
  }

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

  static double span_ms(const Op& op) { return kMsPerNs * static_cast<double>(op.end - op.start); }

  // Computes durations after the last entry. If sides are missing: the shortest recorded side or the
  // channel's shortest duration, which excludes the wait for the missing rank.
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
    entries_.reserve(step_.ops.size());
    for (uint32_t i = 0; i < step_.ranks.size(); ++i) {
      const uint8_t hosts = host_bits(i);
      for (uint32_t k = step_.begin[i]; k < step_.begin[i + 1]; ++k) {
        if (k + kPrefetchAhead < step_.ops.size())
          __builtin_prefetch(&took_[step_.ops[k + kPrefetchAhead].instance]);
        add_entry(k, step_.clock_ns[i], hosts);
      }
    }
    for (auto& [k, wait] : waits_) wait.start = start_of(wait.op);
  }

  void add_entry(uint32_t k, int64_t clock_ns, uint8_t hosts) {
    const Op& op = step_.ops[k];
    first_ns_ = std::min(first_ns_, op.start + clock_ns);
    last_ns_ = std::max(last_ns_, op.end + clock_ns);
    Entry entry;
    if (!std::isnan(op.gap_ms)) entry.gap_ms = op.gap_ms;
    if (op.excess_ms > 0) entry.excess_ms = std::min(op.excess_ms, op.gap_ms);
    entry.end = entry.instance = op.instance;
    entry.alone = op.alone;
    entry.hosts = hosts;
    if (op.waited_for != kNone) {
      const int64_t entered = step_.aligned(op.waited_for, step_.ops[op.waited_for].start);
      const auto after_ns = static_cast<double>(op.start + clock_ns - entered);
      waits_[k] = {op.waited_for, kNone, static_cast<float>(kMsPerNs * after_ns)};
      entry.waited = true;
    }
    if (const double span = span_ms(op); op.alone || span < took_[op.instance] - kTogetherMs) {
      entry.end = static_cast<uint32_t>(took_.size());
      took_.push_back(span);
      counts_.push_back(false);
    }
    if (op.finished) counts_[entry.end] = true;
    find_after(k, entry);
    entries_.push_back(entry);
  }

  // Index of an operation's start; allocates the index on first use.
  uint32_t start_of(uint32_t k) {
    uint32_t& start = entries_[k].start;
    if (start == kNone) start = starts_++;
    return start;
  }

  void find_after(uint32_t k, Entry& entry) {
    const Op& op = step_.ops[k];
    if (op.launch != k) {
      entry.after = start_of(op.launch);
      entry.how = After::kStart;
      return;
    }
    entry.after = op.before;
    if (op.before == kNone) return;
    const Op& before = step_.ops[op.before];
    if (before.background && op.before != op.awaited) {
      entry.how = After::kStart;
      entry.after = start_of(op.before);
    } else if (before.fused) {
      entry.how = After::kEnds;
      entry.after = static_cast<uint32_t>(launches_.size());
      launches_.push_back(launch_of(op.before));
    } else {
      entry.how = After::kEnd;
    }
  }

  // The launch that contains an operation. A launch's operations begin together and end with the last one.
  Launch launch_of(uint32_t k) const {
    Launch out{step_.ops[k].launch, k + 1};
    while (out.to < step_.begin[step_.owner[k] + 1] && step_.ops[out.to].launch == out.from) ++out.to;
    return out;
  }

  // Ranks that have not entered an instance, and the last rank that waits for them.
  struct Gate {
    uint32_t missing = 0, waiting = kNone;
  };

  // The awaited instance of an operation, if some rank has not entered it; else kNone.
  uint32_t waits_for(const Entry& entry, const std::vector<Gate>& gates) const {
    if (entry.how != After::kEnd && entry.how != After::kEnds) return kNone;
    const Launch all =
        entry.how == After::kEnds ? launches_[entry.after] : Launch{entry.after, entry.after + 1};
    for (uint32_t m = all.from; m < all.to; ++m)
      if (const Entry& e = entries_[m]; !e.alone && gates[e.instance].missing > 0) return e.instance;
    return kNone;
  }

  // Visits the operations in dependency order: each rank continues until it waits for a rank that has not
  // entered. Calls visit() for each operation and prefetch() for its probable successors.
  template <class Prefetch, class Visit>
  void visit_in_order(Prefetch prefetch, Visit visit) const {
    const auto ranks = static_cast<uint32_t>(step_.ranks.size());
    std::vector<uint32_t> next(step_.begin.begin(), step_.begin.end() - 1), ready(ranks);
    std::vector<Gate> gates;  // by instance
    gates.reserve(step_.instances.size());
    for (const Instance& instance : step_.instances) gates.push_back({instance.count, kNone});
    std::vector<uint32_t> earlier(ranks, kNone);  // by waiting rank: the previous waiting rank
    // Awaited operation and waiting rank (hidden waits); few.
    std::vector<std::pair<uint32_t, uint32_t>> hidden;
    const auto prefetch_ends = [&](uint32_t k) {
      __builtin_prefetch(&gates[entries_[k].instance]);
      prefetch(k);
    };
    // A stack: ranks of one host run consecutively and share cache lines.
    for (uint32_t i = 0; i < ranks; ++i) ready[i] = ranks - 1 - i;
    while (!ready.empty()) {
      const uint32_t rank = ready.back();
      ready.pop_back();
      for (; next[rank] < step_.begin[rank + 1]; ++next[rank]) {
        const uint32_t k = next[rank];
        if (const uint32_t on = waits_for(entries_[k], gates); on != kNone) {
          earlier[rank] = std::exchange(gates[on].waiting, rank);
          break;
        }
        if (entries_[k].waited) {
          const uint32_t e = waits_.at(k).op;
          if (next[step_.owner[e]] <= e) {
            hidden.emplace_back(e, rank);
            break;
          }
        }
        if (k + 1 < step_.begin[rank + 1]) prefetch_ends(k + 1);
        visit(k);
        if (!hidden.empty()) {
          for (const auto& [entered, waits] : hidden)
            if (entered == k) ready.push_back(waits);
          std::erase_if(hidden, [k](const auto& h) { return h.first == k; });
        }
        Gate& gate = gates[entries_[k].instance];
        if (--gate.missing > 0) continue;
        for (uint32_t r = std::exchange(gate.waiting, kNone); r != kNone; r = earlier[r]) {
          __builtin_prefetch(&entries_[next[r]]);
          ready.push_back(r);
        }
      }
    }
  }

  // Replays of one pass, one per lane; times are milliseconds from the first entry.
  template <size_t kLanes>
  class Run {
   public:
    Run(const Replay& r, std::span<const Excess* const> excesses) : r_(r), excesses_(excesses) {
      starts_.resize(r_.starts_);
      ends_.reserve(r_.took_.size());
      for (size_t n = 0; n < r_.took_.size(); ++n) {
        End& end = ends_.emplace_back();
        end.entry.fill(n < r_.step_.instances.size() ? -INFINITY : 0);
        end.took.fill(r_.took_[n]);
      }
      for (size_t lane = 0; lane < excesses_.size(); ++lane)
        if (excesses_[lane]) leave_out(*excesses_[lane], lane);
    }

    void prefetch(uint32_t k) const { __builtin_prefetch(&ends_[r_.entries_[k].end]); }

    void enter(uint32_t k) {
      const Entry& entry = r_.entries_[k];
      Times at = after(k, entry);
      for (double& t : at) t += entry.gap_ms;
      if (entry.waited || (entry.hosts & hosts_) != 0) shorten(k, entry, at);
      if (entry.start != kNone) starts_[entry.start] = at;
      Times& last = ends_[entry.instance].entry;
      for (size_t lane = 0; lane < kLanes; ++lane) last[lane] = std::max(last[lane], at[lane]);
      if (entry.end != entry.instance) ends_[entry.end].entry = at;
    }

    // Appends the lengths of the step, once all operations have entered.
    void add_lengths(std::vector<double>& lengths) const {
      Times last{};
      for (size_t n = 0; n < ends_.size(); ++n) {
        if (!r_.counts_[n]) continue;
        const Times at = ends_[n].at();
        for (size_t lane = 0; lane < kLanes; ++lane) last[lane] = std::max(last[lane], at[lane]);
      }
      lengths.insert(lengths.end(), last.begin(), last.begin() + static_cast<ptrdiff_t>(excesses_.size()));
    }

   private:
    using Times = std::array<double, kLanes>;
    // Last entry of the sides that leave together (or the entry of a side that does not wait), and the
    // duration since.
    struct End {
      Times entry, took;
      Times at() const {
        Times out;
        for (size_t lane = 0; lane < kLanes; ++lane) out[lane] = entry[lane] + took[lane];
        return out;
      }
    };

    void leave_out(const Excess& excess, size_t lane) {
      for (size_t h = 0; h < r_.hosts_.size(); ++h)
        if (r_.hosts_[h] == excess.host) lane_of_[h] = lane, hosts_ |= static_cast<uint8_t>(1u << h);
      for (uint32_t n = 0; n < r_.step_.instances.size() && !excess.channels.empty(); ++n) {
        const Instance& i = r_.step_.instances[n];
        if (!excess.channels[i.local] || i.slower_ms == 0) continue;
        ends_[n].took[lane] -= i.slower_ms;
        for (uint32_t s = 0; s < i.count; ++s)
          if (const Entry& entry = r_.entries_[r_.step_.sides[i.first + s]];
              entry.alone && r_.took_[entry.end] >= r_.took_[n] - kTogetherMs)
            ends_[entry.end].took[lane] -= i.slower_ms;
      }
    }

    // Removes the excess from an entry time: in all lanes if it waited, else in its host's lanes.
    void shorten(uint32_t k, const Entry& entry, Times& at) const {
      if (!entry.waited) {
        for (size_t h = 0; h < r_.hosts_.size(); ++h)
          if ((entry.hosts & hosts_) >> h & 1) at[lane_of_[h]] -= entry.excess_ms;
        return;
      }
      const Wait& wait = r_.waits_.at(k);
      for (size_t lane = 0; lane < kLanes; ++lane)
        at[lane] = std::max(at[lane] - entry.excess_ms, starts_[wait.start][lane] + wait.after_ms);
    }

    Times after(uint32_t k, const Entry& entry) const {
      Times out;
      switch (entry.how) {
        case After::kNothing:
          out.fill(kMsPerNs * static_cast<double>(r_.step_.aligned(k, r_.step_.ops[k].start) - r_.first_ns_) -
                   entry.gap_ms);
          return out;
        case After::kStart:
          return starts_[entry.after];
        case After::kEnd:
          return ends_[r_.entries_[entry.after].end].at();
        case After::kEnds:
          break;
      }
      out.fill(-INFINITY);
      for (uint32_t m = r_.launches_[entry.after].from; m < r_.launches_[entry.after].to; ++m) {
        const Times one = ends_[r_.entries_[m].end].at();
        for (size_t lane = 0; lane < kLanes; ++lane) out[lane] = std::max(out[lane], one[lane]);
      }
      return out;
    }

    const Replay& r_;
    const std::span<const Excess* const> excesses_;  // by lane; null: nothing is removed
    uint8_t hosts_ = 0;                              // bits of Replay::hosts_ that have a lane
    std::array<size_t, kHosts> lane_of_{};
    std::vector<Times> starts_;
    LargeTable<End> ends_;
  };

  const Cluster& cluster_;
  const Step& step_;
  std::vector<uint32_t> hosts_;               // of the excesses
  LargeTable<Entry> entries_;                 // by operation
  std::unordered_map<uint32_t, Wait> waits_;  // by operation; few
  std::vector<Launch> launches_;
  std::vector<uint32_t> order_;  // of operations; empty unless there are more excesses than lanes
  uint32_t starts_ = 0;          // number of allocated starts
  // By end, instances first: duration, and whether any side finished.
  std::vector<double> took_;
  std::vector<bool> counts_;
  int64_t first_ns_ = INT64_MAX, last_ns_ = INT64_MIN;  // of all entries and exits
  std::optional<bool> lost_;
  std::vector<double> lengths_;  // of the step, and of the step without each excess
  bool holds_ = false;           // the replay without changes reproduces the recorded length
};

// Cost estimate without a valid replay: time on the path, or the largest excess if the path avoids the ranks.
// Delays of several ranks overlap, so costs are not summed.
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
  // Ordered by excess and path, because a lost record may divert the path.
  if (order.size() > kHosts) order.resize(kHosts);
  if (order.empty() && step.result.network.empty()) return;
  std::vector<Excess> excesses;
  for (const auto& [most, host] : order) excesses.push_back({host, {}});
  for (const NetEffect& effect : step.result.network) {
    Excess& excess = excesses.emplace_back();
    excess.channels.assign(step.channels.size(), false);
    for (const uint32_t c : effect.channels) excess.channels[c] = true;
  }
  Replay replay(cluster, step, excesses);
  size_t at = 0;
  for (const auto& [most, host] : order) {
    const double ms = replay.without(at++);
    if (ms < 0) {
      if (host == order[0].second) take_excess(accounts[host].ranks, step.result);
      continue;
    }
    for (const uint32_t i : accounts[host].ranks) {
      RankStep& r = step.result.ranks[i];
      r.path = static_cast<float>(ms * r.excess / accounts[host].excess);
    }
  }
  for (NetEffect& effect : step.result.network)
    if (const double ms = replay.without(at++); ms >= 0) effect.cost = ms;
}

}  // namespace culprit::comm
