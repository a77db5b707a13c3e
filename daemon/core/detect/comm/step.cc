#include "core/detect/comm/step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/detect/comm/robust.h"

namespace culprit::comm {
namespace {

// Stamps that lie nearer to one another were taken together.
constexpr int64_t kTogetherNs = 2000;

bool same_operation(const CommRecord& a, const CommRecord& b) {
  return a.comm == b.comm && a.op == b.op && a.peer == b.peer && a.seq == b.seq;
}

class Builder {
 public:
  Builder(Cluster& cluster, Step& step) : cluster_(cluster), step_(step) {}

  void add_ops(std::span<const CommRecord* const> records) {
    const size_t ranks = cluster_.ranks().size();
    std::vector<uint32_t> at(ranks + 1, 0);
    for (const CommRecord* r : records) ++at[cluster_.find_rank(r->rank) + 1];
    for (size_t i = 0; i < ranks; ++i) at[i + 1] += at[i];
    std::vector<const CommRecord*> sorted(records.size());
    std::vector<uint32_t> fill(at.begin(), at.end() - 1);
    for (const CommRecord* r : records) sorted[fill[cluster_.find_rank(r->rank)]++] = r;
    for (uint32_t i = 0; i < ranks; ++i)
      if (at[i + 1] > at[i]) step_.ranks.push_back(i);
    std::sort(step_.ranks.begin(), step_.ranks.end(),
              [&](uint32_t a, uint32_t b) { return cluster_.ranks()[a].rank < cluster_.ranks()[b].rank; });
    step_.ops.reserve(records.size());
    step_.owner.reserve(records.size());
    step_.begin.push_back(0);
    for (uint32_t i = 0; i < step_.ranks.size(); ++i) {
      const uint32_t rank = step_.ranks[i];
      add_rank({sorted.data() + at[rank], at[rank + 1] - at[rank]}, i);
      step_.begin.push_back(static_cast<uint32_t>(step_.ops.size()));
    }
  }

  void match() {
    number_channels();
    std::vector<uint32_t> count;
    for (Op& op : step_.ops) {
      op.instance = instance_of(op);
      ++step_.instances[op.instance].count;
    }
    uint32_t first = 0;
    for (Instance& instance : step_.instances) {
      instance.first = first;
      first += instance.count;
      instance.count = 0;
    }
    step_.sides.resize(first);
    for (uint32_t i = 0; i < step_.ops.size(); ++i) {
      Instance& instance = step_.instances[step_.ops[i].instance];
      step_.sides[instance.first + instance.count++] = i;
    }
    for (Instance& instance : step_.instances) check(instance);
  }

 private:
  void add_rank(std::span<const CommRecord*> mine, uint32_t owner) {
    const auto earlier = [](const CommRecord* a, const CommRecord* b) {
      return std::tie(a->start_ns, a->end_ns, a->comm, a->seq) <
             std::tie(b->start_ns, b->end_ns, b->comm, b->seq);
    };
    if (!std::is_sorted(mine.begin(), mine.end(), earlier)) std::sort(mine.begin(), mine.end(), earlier);
    const size_t first = step_.ops.size();
    size_t tied = 0;  // the first of those that began with the one before
    for (size_t i = 0; i < mine.size(); ++i) {
      const CommRecord& r = *mine[i];
      if (i == 0 || r.start_ns != mine[i - 1]->start_ns) tied = i;
      // Written at entry and again at exit, or twice: unfinished ones come first, the longer span wins.
      size_t twin = tied;
      while (twin < i && !same_operation(*mine[twin], r)) ++twin;
      const uint32_t slot = cluster_.slot_of(step_.ranks[owner], r);
      cluster_.note(step_.ranks[owner], slot, r);
      if (twin < i) {
        for (size_t k = step_.ops.size(); k > first; --k) {
          Op& op = step_.ops[k - 1];
          if (op.slot != slot || op.seq != r.seq || op.op != r.op) continue;
          step_.duplicates += op.finished && r.end_ns != 0;
          op.end = std::max(op.end, static_cast<int64_t>(r.end_ns));
          op.finished = op.finished || r.end_ns != 0;
          break;
        }
        continue;
      }
      Op op;
      op.start = static_cast<int64_t>(r.start_ns);
      op.finished = r.end_ns != 0;
      op.end = op.finished ? static_cast<int64_t>(r.end_ns) : op.start;
      op.seq = r.seq;
      op.bytes = r.bytes;
      op.slot = slot;
      op.op = r.op;
      step_.ops.push_back(op);
      step_.owner.push_back(owner);
    }
    for (size_t i = first + 1; i < step_.ops.size(); ++i) {
      Op &a = step_.ops[i - 1], &b = step_.ops[i];
      if (b.start - a.start > kTogetherNs || std::abs(b.end - a.end) > kTogetherNs) continue;
      a.fused = b.fused = true;
    }
  }

  struct Span {
    uint64_t low = UINT64_MAX, high = 0;
    uint32_t ops = 0, first = kNone;  // instances; kNone: numbers that lie far apart are looked up
  };

  uint32_t channel_of(const Op& op, uint32_t owner) const {
    return cluster_.ranks()[step_.ranks[owner]].slots[op.slot].channel;
  }

  void number_channels() {
    spans_.resize(cluster_.channels().size());
    for (uint32_t i = 0; i < step_.ops.size(); ++i) {
      Span& span = spans_[channel_of(step_.ops[i], step_.owner[i])];
      span.low = std::min(span.low, step_.ops[i].seq);
      span.high = std::max(span.high, step_.ops[i].seq);
      ++span.ops;
    }
    step_.base.resize(spans_.size(), 0);
    for (uint32_t c = 0; c < spans_.size(); ++c) {
      Span& span = spans_[c];
      if (span.ops == 0) continue;
      step_.base[c] = span.low;
      if (span.high - span.low >= 2ull * span.ops + 16) continue;  // no numbering: a table would have no end
      span.first = static_cast<uint32_t>(step_.instances.size());
      step_.instances.resize(step_.instances.size() + span.high - span.low + 1);
      for (uint32_t i = span.first; i < step_.instances.size(); ++i) step_.instances[i].channel = c;
    }
  }

  uint32_t instance_of(const Op& op) {
    const auto i = static_cast<size_t>(&op - step_.ops.data());
    const uint32_t channel = channel_of(op, step_.owner[i]);
    const Span& span = spans_[channel];
    uint32_t index = 0;
    if (span.first != kNone) {
      index = span.first + static_cast<uint32_t>(op.seq - span.low);
    } else {
      const auto [at, fresh] =
          sparse_.try_emplace(mix64(channel, op.seq), static_cast<uint32_t>(step_.instances.size()));
      if (fresh) step_.instances.emplace_back().channel = channel;
      index = *at;
    }
    Instance& instance = step_.instances[index];
    if (instance.count == 0 || op.op != CommOp::kRecv) instance.op = op.op;
    return index;
  }

  void check(Instance& instance) const {
    const Channel& channel = cluster_.channels()[instance.channel];
    const bool p2p = channel.sender != kNone;
    const size_t expected = p2p ? 2 : cluster_.comms()[channel.comm].members.size();
    instance.complete = instance.count == expected && instance.count > 1;
    for (uint32_t k = 0; k < instance.count && instance.complete; ++k)
      instance.complete = step_.ops[step_.sides[instance.first + k]].finished;
  }

  Cluster& cluster_;
  Step& step_;
  std::vector<Span> spans_;
  FlatMap<uint32_t> sparse_;
};

// What two hosts, a < b, saw of the same operations.
struct Compared {
  std::vector<double> exits;  // b's less a's, of operations that all leave together
  // Of what was sent: the least time from a's entry to b's exit, and from b's to a's.
  double there = INFINITY, back = INFINITY;
};
using Comparison = std::map<std::pair<uint32_t, uint32_t>, Compared>;

uint32_t host_of(const Cluster& cluster, const Step& step, uint32_t side) {
  return cluster.ranks()[step.ranks[step.owner[side]]].host;
}

void compare_exits(const Cluster& cluster, const Step& step, const Instance& instance, Comparison& out) {
  constexpr size_t kEnough = 64;  // of a pair: their median is as good as that of more
  const Op& lead = step.ops[step.sides[instance.first]];
  const uint32_t a = host_of(cluster, step, step.sides[instance.first]);
  if (!lead.finished || a == kNone) return;
  uint32_t before = a;
  for (uint32_t k = 1; k < instance.count; ++k) {
    const uint32_t side = step.sides[instance.first + k];
    const uint32_t b = host_of(cluster, step, side);
    if (b == before || b == kNone || b == a || !step.ops[side].finished) continue;
    before = b;
    auto& list = out[std::minmax(a, b)].exits;
    const auto d = static_cast<double>(step.ops[side].end - lead.end);
    if (list.size() < kEnough) list.push_back(b < a ? -d : d);
  }
}

void compare_sends(const Cluster& cluster, const Step& step, const Instance& instance, Comparison& out) {
  uint32_t from = step.sides[instance.first], to = step.sides[instance.first + 1];
  if (step.ops[from].op == CommOp::kRecv) std::swap(from, to);
  const uint32_t a = host_of(cluster, step, from), b = host_of(cluster, step, to);
  if (a == b || a == kNone || b == kNone) return;
  Compared& c = out[std::minmax(a, b)];
  double& least = a < b ? c.there : c.back;
  least = std::min(least, static_cast<double>(step.ops[to].end - step.ops[from].start));
}

Comparison compare_hosts(const Cluster& cluster, const Step& step) {
  Comparison out;
  for (const Instance& instance : step.instances) {
    const Channel& channel = cluster.channels()[instance.channel];
    if (instance.count < 2 || cluster.comms()[channel.comm].hosts < 2) continue;
    if (channel.sender == kNone && is_synchronising(instance.op))
      compare_exits(cluster, step, instance, out);
    else if (channel.sender != kNone && instance.complete)
      compare_sends(cluster, step, instance, out);
  }
  return out;
}

}  // namespace

int64_t Step::aligned(const Cluster& cluster, uint32_t op, int64_t time) const {
  const uint32_t host = cluster.ranks()[ranks[owner[op]]].host;
  return host == kNone ? time : time + static_cast<int64_t>(clock_ns[host]);
}

Step build_step(Cluster& cluster, int64_t number, std::span<const CommRecord* const> records) {
  Step step;
  step.number = number;
  step.result.number = number;
  Builder builder(cluster, step);
  builder.add_ops(records);
  cluster.settle();
  builder.match();
  return step;
}

void align_clocks(const Cluster& cluster, Step& step) {
  const size_t hosts = cluster.hosts().size();
  step.clock_ns.assign(hosts, 0);
  if (hosts < 2) return;
  std::vector<std::vector<std::pair<uint32_t, double>>> edges(hosts), rough(hosts);
  const auto join = [](auto& to, const std::pair<uint32_t, uint32_t>& pair, double d) {
    to[pair.first].emplace_back(pair.second, d);
    to[pair.second].emplace_back(pair.first, -d);
  };
  for (auto& [pair, c] : compare_hosts(cluster, step)) {
    if (!c.exits.empty())
      join(edges, pair, lower_median(c.exits));
    else if (std::isfinite(c.there) && std::isfinite(c.back))
      join(rough, pair, (c.there - c.back) / 2);  // as long there as back
  }
  std::vector<bool> known(hosts, false);
  for (uint32_t start = 0; start < hosts; ++start) {
    if (known[start]) continue;
    known[start] = true;
    std::vector<uint32_t> queue{start};
    // Sends connect only what nothing better does.
    for (const auto* kind : {&edges, &rough})
      for (size_t i = 0; i < queue.size(); ++i)
        for (const auto& [to, d] : (*kind)[queue[i]]) {
          if (known[to]) continue;
          known[to] = true;
          step.clock_ns[to] = step.clock_ns[queue[i]] - d;
          queue.push_back(to);
        }
  }
}

}  // namespace culprit::comm
