#include "core/detect/comm/step.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>

#include "core/detect/comm/robust.h"

namespace culprit::comm {
namespace {

// Number of operations compared one by one to find a repeated record; more use an index.
constexpr size_t kTies = 8;

class Builder {
 public:
  Builder(const Cluster& cluster, Step& step) : cluster_(cluster), step_(step) {}

  void add_ops(const SortedRecords& records) {
    LargeTable<const SortedRecord*> sorted = sort_by_rank(records);
    step_.ops.reserve(records.size());
    step_.owner.reserve(records.size());
    step_.begin.push_back(0);
    for (uint32_t i = 0; i < step_.ranks.size(); ++i) {
      // Records are stored in reading order, so the next rank's records are prefetched meanwhile.
      if (i + 1 < step_.ranks.size())
        for (uint32_t k = first_[i + 1]; k < first_[i + 2]; ++k) __builtin_prefetch(sorted[k]);
      add_rank({sorted.data() + first_[i], first_[i + 1] - first_[i]}, i);
      step_.begin.push_back(static_cast<uint32_t>(step_.ops.size()));
    }
  }

  void match() {
    number_channels();
    for (uint32_t i = 0; i < step_.ops.size(); ++i) {
      if (i + kPrefetchAhead < step_.ops.size()) prefetch_instance(step_.ops[i + kPrefetchAhead]);
      Op& op = step_.ops[i];
      op.instance = instance_of(op);
      ++step_.instances[op.instance].count;
    }
    uint32_t first = 0;
    for (Instance& instance : step_.instances) {
      instance.first = first;
      first += instance.count;
      instance.complete = has_all(instance);
      instance.count = 0;
    }
    step_.sides.resize(first);
    for (uint32_t i = 0; i < step_.ops.size(); ++i) {
      if (i + kPrefetchAhead < step_.ops.size())
        __builtin_prefetch(&step_.instances[step_.ops[i + kPrefetchAhead].instance], 1);
      const Op& op = step_.ops[i];
      Instance& instance = step_.instances[op.instance];
      instance.complete = instance.complete && op.finished;
      instance.differs =
          instance.differs || op.op != instance.op || (instance.count > 0 && op.bytes != instance.bytes);
      instance.bytes = std::max(instance.bytes, op.bytes);
      instance.least_ns = std::min(instance.least_ns, op.end - op.start);
      step_.sides[instance.first + instance.count++] = i;
    }
    find_last();
  }

 private:
  // Sorts records by rank; step_.ranks becomes ascending.
  LargeTable<const SortedRecord*> sort_by_rank(const SortedRecords& records) {
    std::vector<uint32_t>& at = step_.rank_at;
    at.resize(cluster_.ranks().size(), kNone);
    std::vector<uint32_t> count;
    records.for_each([&](const SortedRecord& r) {
      if (at[r.rank] == kNone) {
        at[r.rank] = static_cast<uint32_t>(count.size());
        count.push_back(0);
        step_.ranks.push_back(r.rank);
      }
      ++count[at[r.rank]];
    });
    std::sort(step_.ranks.begin(), step_.ranks.end(),
              [&](uint32_t a, uint32_t b) { return cluster_.ranks()[a].rank < cluster_.ranks()[b].rank; });
    first_.assign(1, 0);
    for (uint32_t i = 0; i < step_.ranks.size(); ++i) {
      uint32_t& place = at[step_.ranks[i]];
      first_.push_back(first_[i] + count[place]);
      place = i;
    }
    std::vector<uint32_t> fill(first_.begin(), first_.end() - 1);
    LargeTable<const SortedRecord*> sorted(records.size());
    records.for_each([&](const SortedRecord& r) { sorted[fill[at[r.rank]]++] = &r; });
    for (const uint32_t rank : step_.ranks) at[rank] = kNone;
    return sorted;
  }

  void add_rank(std::span<const SortedRecord*> mine, uint32_t owner) {
    const RankInfo& info = cluster_.ranks()[step_.ranks[owner]];
    const auto earlier = [&info](const SortedRecord* a, const SortedRecord* b) {
      return std::tie(a->start, a->end, info.slots[a->slot].comm, a->seq) <
             std::tie(b->start, b->end, info.slots[b->slot].comm, b->seq);
    };
    if (!std::is_sorted(mine.begin(), mine.end(), earlier)) std::sort(mine.begin(), mine.end(), earlier);
    const size_t first = step_.ops.size();
    size_t tied = first;  // first of the operations with the current start time
    for (const SortedRecord* r : mine) {
      if (tied < step_.ops.size() && step_.ops[tied].start != r->start) tied = step_.ops.size();
      // An operation is recorded at entry and again at exit, or twice. Unfinished records come first; the
      // longer span wins.
      if (Op* logged = twin(tied, *r)) {
        step_.duplicates += logged->finished && r->end != 0;
        logged->end = std::max(logged->end, r->end);
        logged->finished = logged->finished || r->end != 0;
        continue;
      }
      Op op;
      op.start = r->start;
      op.finished = r->end != 0;
      op.end = op.finished ? r->end : op.start;
      op.seq = r->seq;
      op.bytes = r->bytes;
      op.slot = r->slot;
      op.instance = local_channel(info.slots[r->slot].channel);  // index of its channel until matched
      op.op = r->op;
      spans_[op.instance].add(op.seq);
      step_.ops.push_back(op);
      step_.owner.push_back(owner);
    }
    for (size_t i = first; i < step_.ops.size(); ++i) {
      Op& b = step_.ops[i];
      b.launch = static_cast<uint32_t>(i);
      if (i == first) continue;
      Op& a = step_.ops[i - 1];
      if (b.start - a.start > kTogetherNs || std::abs(b.end - a.end) > kTogetherNs) continue;
      a.fused = b.fused = true;
      b.launch = a.launch;
    }
  }

  // The operation from `tied` on that the record repeats; null: none.
  Op* twin(size_t tied, const SortedRecord& r) {
    auto& ops = step_.ops;
    const auto key = [](uint32_t s, uint64_t seq, CommOp op) {
      return mix64(seq, uint64_t{s} << 8 | static_cast<uint64_t>(op));
    };
    if (ops.size() - tied <= kTies) {
      for (size_t k = ops.size(); k > tied; --k)
        if (Op& op = ops[k - 1]; op.slot == r.slot && op.seq == r.seq && op.op == r.op) return &op;
      return nullptr;
    }
    if (looked_up_ != tied) {
      ties_.clear();
      looked_up_ = next_tie_ = tied;
    }
    for (; next_tie_ < ops.size(); ++next_tie_)
      ties_.try_emplace(key(ops[next_tie_].slot, ops[next_tie_].seq, ops[next_tie_].op),
                        static_cast<uint32_t>(next_tie_));
    const uint32_t* at = ties_.find(key(r.slot, r.seq, r.op));
    return at ? &ops[*at] : nullptr;
  }

  uint32_t local_channel(uint32_t channel) {
    uint32_t& at = step_.channel_at[channel];
    if (at == kNone) {
      at = static_cast<uint32_t>(step_.channels.size());
      step_.channels.push_back(channel);
      spans_.emplace_back();
    }
    return at;
  }

  struct Span {
    uint64_t low = UINT64_MAX, high = 0;
    uint32_t ops = 0, first = kNone;  // first instance; kNone: sparse numbers use an index

    void add(uint64_t seq) {
      low = std::min(low, seq);
      high = std::max(high, seq);
      ++ops;
    }
    bool numbered() const { return high - low < 2ull * ops + 16; }  // limits the size of the table
    size_t length() const { return numbered() ? high - low + 1 : 0; }
  };

  void number_channels() {
    size_t all = 0;
    for (const Span& span : spans_) all += span.length();
    step_.instances.reserve(all);
    for (uint32_t c = 0; c < spans_.size(); ++c) {
      Span& span = spans_[c];
      step_.base.push_back(span.low);
      if (!span.numbered()) continue;
      span.first = static_cast<uint32_t>(step_.instances.size());
      Instance instance;
      instance.channel = step_.channels[c];
      instance.local = c;
      step_.instances.resize(step_.instances.size() + span.length(), instance);
    }
  }

  void prefetch_instance(const Op& op) const {
    if (const Span& span = spans_[op.instance]; span.first != kNone)
      __builtin_prefetch(&step_.instances[span.first + (op.seq - span.low)], 1);
  }

  uint32_t instance_of(const Op& op) {
    const Span& span = spans_[op.instance];
    uint32_t index = 0;
    if (span.first != kNone) {
      index = span.first + static_cast<uint32_t>(op.seq - span.low);
    } else {
      const auto [at, fresh] =
          sparse_.try_emplace(mix64(op.instance, op.seq), static_cast<uint32_t>(step_.instances.size()));
      if (fresh) {
        Instance& made = step_.instances.emplace_back();
        made.channel = step_.channels[op.instance];
        made.local = op.instance;
      }
      index = *at;
    }
    Instance& instance = step_.instances[index];
    if (instance.count == 0 || op.op != CommOp::kRecv) instance.op = op.op;
    return index;
  }

  void find_last() {
    for (uint32_t c = 0; c < spans_.size(); ++c) {
      const Span& span = spans_[c];
      step_.last.push_back(span.numbered() ? span.first + static_cast<uint32_t>(span.high - span.low)
                                           : *sparse_.find(mix64(c, span.high)));
    }
  }

  bool has_all(const Instance& instance) const {
    const Channel& channel = cluster_.channels()[instance.channel];
    const bool p2p = channel.sender != kNone;
    return instance.count > 1 && instance.count == (p2p ? 2 : cluster_.comms()[channel.comm].members.size());
  }

  const Cluster& cluster_;
  Step& step_;
  std::vector<uint32_t> first_;  // by index into Step::ranks: its first record
  std::vector<Span> spans_;      // by index into Step::channels
  FlatMap<uint32_t> sparse_, ties_;
  size_t looked_up_ = SIZE_MAX, next_tie_ = 0;  // range of operations in ties_
};

// Observations of the same operations by two hosts, a < b.
struct Compared {
  uint32_t a = 0, b = 0;
  std::vector<double> exits;  // exit on b minus exit on a, for operations that all leave together
  // For sends: the shortest time from a's entry to b's exit, and from b's to a's.
  double there = INFINITY, back = INFINITY;
};

class HostComparison {
 public:
  HostComparison(const Cluster& cluster, const Step& step) : step_(step) {
    hosts_.reserve(step.ranks.size());
    for (const uint32_t rank : step.ranks) hosts_.push_back(cluster.ranks()[rank].host);
    for (const Instance& instance : step.instances) {
      const Channel& channel = cluster.channels()[instance.channel];
      if (instance.count < 2 || cluster.comms()[channel.comm].hosts < 2) continue;
      if (channel.sender == kNone && is_synchronising(instance.op))
        compare_exits(instance);
      else if (channel.sender != kNone && instance.complete)
        compare_sends(instance);
    }
  }

  // Ascending by pair.
  std::vector<Compared> result() {
    std::sort(pairs_.begin(), pairs_.end(),
              [](const Compared& x, const Compared& y) { return std::tie(x.a, x.b) < std::tie(y.a, y.b); });
    return std::move(pairs_);
  }

 private:
  uint32_t host_of(uint32_t side) const { return hosts_[step_.owner[side]]; }

  Compared& pair(uint32_t a, uint32_t b) {
    if (a > b) std::swap(a, b);
    const auto [at, fresh] =
        by_pair_.try_emplace(uint64_t{a} << 32 | b, static_cast<uint32_t>(pairs_.size()));
    if (fresh) {
      pairs_.emplace_back();
      pairs_.back().a = a;
      pairs_.back().b = b;
    }
    return pairs_[*at];
  }

  void compare_exits(const Instance& instance) {
    constexpr size_t kEnough = 64;  // per pair: more exits do not improve the median
    const Op& lead = step_.ops[step_.sides[instance.first]];
    const uint32_t a = host_of(step_.sides[instance.first]);
    if (!lead.finished || a == kNone) return;
    uint32_t before = a;
    for (uint32_t k = 1; k < instance.count; ++k) {
      step_.prefetch_side(instance.first + k);
      const uint32_t side = step_.sides[instance.first + k];
      const uint32_t b = host_of(side);
      if (b == before || b == kNone || b == a || !step_.ops[side].finished) continue;
      before = b;
      auto& list = pair(a, b).exits;
      const auto d = static_cast<double>(step_.ops[side].end - lead.end);
      if (list.size() < kEnough) list.push_back(b < a ? -d : d);
    }
  }

  void compare_sends(const Instance& instance) {
    uint32_t from = step_.sides[instance.first], to = step_.sides[instance.first + 1];
    for (const uint32_t k : {0, 1}) step_.prefetch_side(instance.first + k);
    if (host_of(from) == host_of(to)) return;
    if (step_.ops[from].op == CommOp::kRecv) std::swap(from, to);
    const uint32_t a = host_of(from), b = host_of(to);
    if (a == kNone || b == kNone) return;
    Compared& c = pair(a, b);
    double& least = a < b ? c.there : c.back;
    least = std::min(least, static_cast<double>(step_.ops[to].end - step_.ops[from].start));
  }

  const Step& step_;
  std::vector<uint32_t> hosts_;  // by index into Step::ranks
  std::vector<Compared> pairs_;
  FlatMap<uint32_t> by_pair_;
};

}  // namespace

void clear_step(const Cluster& cluster, int64_t number, Step& step) {
  step.number = number;
  for (const uint32_t channel : step.channels) step.channel_at[channel] = kNone;
  step.channel_at.resize(cluster.channels().size(), kNone);
  for (auto* list : {&step.ranks, &step.begin, &step.channels, &step.last}) list->clear();
  step.owner.clear();
  step.sides.clear();
  step.ops.clear();
  step.instances.clear();
  step.base.clear();
  step.kinds.clear();
  step.duplicates = 0;
  step.result = {};
  step.result.number = number;
}

void build_step(const Cluster& cluster, int64_t number, const SortedRecords& records, Step& step) {
  clear_step(cluster, number, step);
  Builder builder(cluster, step);
  builder.add_ops(records);
  builder.match();
}

void align_clocks(const Cluster& cluster, Step& step) {
  const size_t hosts = cluster.hosts().size();
  step.clock_ns.assign(step.ranks.size(), 0);
  if (hosts < 2) return;
  std::vector<Compared> pairs = HostComparison(cluster, step).result();
  if (pairs.empty()) return;
  std::vector<std::vector<std::pair<uint32_t, double>>> edges(hosts), rough(hosts);
  const auto join = [](auto& to, const Compared& c, double d) {
    to[c.a].emplace_back(c.b, d);
    to[c.b].emplace_back(c.a, -d);
  };
  for (Compared& c : pairs) {
    if (!c.exits.empty())
      join(edges, c, lower_median(c.exits));
    else if (std::isfinite(c.there) && std::isfinite(c.back))
      join(rough, c, (c.there - c.back) / 2);  // assumes equal times in both directions
  }
  std::vector<bool> known(hosts, false);
  std::vector<double> clock_ns(hosts, 0);
  for (uint32_t start = 0; start < hosts; ++start) {
    if (known[start]) continue;
    known[start] = true;
    std::vector<uint32_t> queue{start};
    // Sends only connect hosts that synchronising operations do not connect.
    for (const auto* kind : {&edges, &rough})
      for (size_t i = 0; i < queue.size(); ++i)
        for (const auto& [to, d] : (*kind)[queue[i]]) {
          if (known[to]) continue;
          known[to] = true;
          clock_ns[to] = clock_ns[queue[i]] - d;
          queue.push_back(to);
        }
  }
  for (uint32_t i = 0; i < step.ranks.size(); ++i)
    if (const uint32_t host = cluster.ranks()[step.ranks[i]].host; host != kNone)
      step.clock_ns[i] = static_cast<int64_t>(clock_ns[host]);
}

}  // namespace culprit::comm
