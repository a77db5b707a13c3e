#include "core/detect/comm/network.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "core/detect/comm/robust.h"

namespace culprit::comm {
namespace {

constexpr size_t kSteps = 32;  // number of steps whose medians define the usual duration
// Known kinds of operations: a job has some tens of each size; about 200 bytes each.
constexpr size_t kKinds = 1 << 20;
// Quantile of a kind's operations that counts as usual. If one of four stages is behind a slow switch, half
// of all sends are slow.
constexpr double kUsual = 0.4;
// Minimum log ratio of an actionable slowdown; other traffic on the network causes smaller ones.
constexpr double kSlowLog = 0.25;
constexpr double kLinkSigmas = 4;
// Evidence from a slow or normal channel for a part on its route. Assumption: a faulty part slows nine of ten
// channels; one of twenty is slow for other reasons. Of these, one of four is twice as slow again, as on
// shared networks, up to kSlowMost.
constexpr double kSlow = 2.9, kNormal = -2.25, kTail = 2, kSlowMost = 12;

// If at most one member in kOneAbsentOf lacks records, it is rarely the last to enter.
constexpr size_t kOneAbsentOf = 8;

// Minimum share of slow channels among those that leave a host, if the whole host is slow: as for kSlow.
constexpr double kAllOfHost = 0.9;

// Maximum number of hosts in a group for which single host pairs are distinguishable.
constexpr size_t kPairs = 4;

uint64_t kind_of(const Cluster& cluster, const Instance& instance) {
  const CommInfo& comm = cluster.comms()[cluster.channels()[instance.channel].comm];
  const auto size_class =
      instance.bytes == 0 ? 0 : static_cast<uint64_t>(4 * std::log2(static_cast<double>(instance.bytes)) + 1);
  const Channel& channel = cluster.channels()[instance.channel];
  bool crosses = comm.hosts > 1;
  if (channel.sender != kNone)
    crosses = cluster.ranks()[channel.sender].host != cluster.ranks()[channel.receiver].host;
  const bool p2p = channel.sender != kNone;
  return mix64(
      mix64(p2p ? 0 : comm.shape, size_class),
      static_cast<uint64_t>(p2p ? CommOp::kSend : instance.op) << 1 | static_cast<uint64_t>(crosses));
}

double transfer_of(const Cluster& cluster, const Step& step, const Instance& instance) {
  if (!instance.complete) return -1;
  const auto side = [&](uint32_t k) { return step.sides[instance.first + k]; };
  if (cluster.channels()[instance.channel].sender == kNone) {
    if (!is_synchronising(instance.op)) return -1;
    return kMsPerNs * static_cast<double>(instance.least_ns);
  }
  for (uint32_t k = 0; k < instance.count; ++k) step.prefetch_side(instance.first + k);
  const bool first_receives = step.ops[side(0)].op == CommOp::kRecv;
  const uint32_t in = side(first_receives ? 0 : 1), out = side(first_receives ? 1 : 0);
  const Op &recv = step.ops[in], &send = step.ops[out];
  int64_t end = step.aligned(in, recv.end);
  // A fused receive ends with its whole launch; its own end is at most the send's.
  if (recv.fused) end = std::min(end, step.aligned(out, send.end));
  const int64_t start = std::max(step.aligned(in, recv.start), step.aligned(out, send.start));
  return std::max(0.0, kMsPerNs * static_cast<double>(end - start));
}

// Marks sends that ended before the other side entered.
void mark_alone(Step& step, const Instance& instance) {
  const uint32_t sides[] = {step.sides[instance.first], step.sides[instance.first + 1]};
  for (const size_t k : {0, 1}) {
    Op& op = step.ops[sides[k]];
    const uint32_t other = sides[1 - k];
    op.alone = op.op == CommOp::kSend && op.finished &&
               step.aligned(other, step.ops[other].start) >= step.aligned(sides[k], op.end);
  }
}

// A channel in one step.
struct Circuit {
  uint32_t channel = 0;
  double slow = 0;   // log of its median ratio to the usual duration
  double usual = 0;  // total, ms
  bool is_slow = false, explained = false, telling = false;
  double evidence = kNormal;
};

struct Part {
  NetKind kind = NetKind::kNic;
  uint32_t a = 0, b = 0;
  bool operator<(const Part& o) const {
    return kind != o.kind ? kind < o.kind : a != o.a ? a < o.a : b < o.b;
  }
};

// Spread of the values: half of the shortest interval with half of them. For symmetric values it equals the
// median absolute deviation, and it stays valid if the other half is slow. For few values, the median
// absolute deviation itself.
double spread_of(std::vector<double>& values) {
  constexpr size_t kFewValues = 16;
  if (values.size() < kFewValues) {
    const double middle = lower_median(values);
    for (double& v : values) v = std::abs(v - middle);
    return lower_median(values);
  }
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  double least = values.back() - values.front();
  for (size_t i = 0; i + half < values.size(); ++i) least = std::min(least, values[i + half] - values[i]);
  return least / 2;
}

class Explain {
 public:
  Explain(const Cluster& cluster, const std::vector<double>& on_path, Step& step)
      : cluster_(cluster), on_path_(on_path), step_(step) {}

  void add(uint32_t channel, double slow, double usual) { circuits_.push_back({channel, slow, usual}); }

  void run() {
    double most = 0;
    std::vector<double> values;
    for (const Circuit& c : circuits_) most = std::max(most, c.usual), values.push_back(c.slow);
    const double bar = std::max(kSlowLog, kLinkSigmas * kMadToSigma * spread_of(values));
    bool any = false;
    for (Circuit& c : circuits_) {
      c.is_slow = c.slow > bar;
      if (c.is_slow) c.evidence = std::min(kSlow + kTail * (c.slow - bar), kSlowMost);
      // A slow link does not affect operations dominated by latency.
      c.telling = c.is_slow || c.usual >= 0.1 * most;
      any = any || c.is_slow;
    }
    if (!any) return;
    size_t telling = 0;
    for (uint32_t i = 0; i < circuits_.size(); ++i)
      if (circuits_[i].telling) list_parts(i), ++telling;
    links_ = count_links();
    // If one host has all operations, its NVLink has no comparison.
    std::erase_if(parts_, [&](const auto& entry) {
      return entry.first.kind == NetKind::kNvlink && entry.second.all.size() == telling;
    });
    for (uint32_t i = 0; i < circuits_.size(); ++i)
      if (circuits_[i].is_slow) list_perhaps(i);
    constexpr int kParts = 8;  // per step; with more simultaneous faults, no single part is the culprit
    const size_t before = step_.result.network.size();
    for (int i = 0; i < kParts && name_best(); ++i) {
    }
    find_switch(before);
  }

 private:
  // Channels that pass through a part (`all`), and larger groups that possibly do (`perhaps`). A slow group
  // in `perhaps` supports the part; a normal one is no counter-evidence.
  struct Through {
    std::vector<uint32_t> all, perhaps;
  };

  std::vector<uint32_t> hosts_of(uint32_t i, std::vector<uint32_t>& ranks) const {
    const Channel& channel = cluster_.channels()[circuits_[i].channel];
    ranks = cluster_.comms()[channel.comm].members;
    if (channel.sender != kNone) ranks = {channel.sender, channel.receiver};
    std::vector<uint32_t> hosts;
    for (const uint32_t r : ranks)
      if (const uint32_t h = cluster_.ranks()[r].host; h != kNone) hosts.push_back(h);
    std::sort(hosts.begin(), hosts.end());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    return hosts;
  }

  void list_parts(uint32_t i) {
    std::vector<uint32_t> ranks;
    const std::vector<uint32_t> hosts = hosts_of(i, ranks);
    if (hosts.empty()) return;
    if (hosts.size() == 1) {
      parts_[{NetKind::kNvlink, hosts[0], 0}].all.push_back(i);
      return;
    }
    for (const uint32_t r : ranks) parts_[{NetKind::kNic, r, 0}].all.push_back(i);
    for (const uint32_t h : hosts) parts_[{NetKind::kHost, h, 0}].all.push_back(i);
    if (hosts.size() > kPairs) return;
    for (size_t x = 0; x < hosts.size(); ++x)
      for (size_t y = x + 1; y < hosts.size(); ++y)
        parts_[{NetKind::kLink, hosts[x], hosts[y]}].all.push_back(i);
  }

  size_t count_links() const {
    std::set<std::pair<uint32_t, uint32_t>> pairs;
    std::vector<uint32_t> ranks;
    for (uint32_t i = 0; i < circuits_.size(); ++i) {
      const std::vector<uint32_t> hosts = hosts_of(i, ranks);
      if (hosts.size() > kPairs) continue;
      for (size_t x = 0; x < hosts.size(); ++x)
        for (size_t y = x + 1; y < hosts.size(); ++y) pairs.emplace(hosts[x], hosts[y]);
    }
    return std::max<size_t>(1, pairs.size());
  }

  // Adds a slow channel to the parts on its possible routes. A group of several hosts uses NVLink within each
  // host that has several of its ranks. A group of many hosts uses links between host pairs.
  void list_perhaps(uint32_t i) {
    std::vector<uint32_t> ranks;
    const std::vector<uint32_t> hosts = hosts_of(i, ranks);
    if (hosts.size() < 2) return;
    for (const uint32_t h : hosts) {
      const auto inside = [&](uint32_t r) { return cluster_.ranks()[r].host == h; };
      const auto nvlink = parts_.find({NetKind::kNvlink, h, 0});
      if (nvlink != parts_.end() && std::count_if(ranks.begin(), ranks.end(), inside) > 1)
        nvlink->second.perhaps.push_back(i);
      if (hosts.size() <= kPairs) continue;
      for (auto at = parts_.lower_bound({NetKind::kLink, h, 0});
           at != parts_.end() && at->first.kind == NetKind::kLink && at->first.a == h; ++at)
        if (std::binary_search(hosts.begin(), hosts.end(), at->first.b)) at->second.perhaps.push_back(i);
    }
  }

  bool open(uint32_t c) const { return circuits_[c].is_slow && !circuits_[c].explained; }

  // Evidence for a part from the channels that it explains: all, or only the marked ones.
  double score_of(const Through& through, double prior, const std::vector<bool>* marked) const {
    double score = prior;
    size_t slow = 0;
    for (const uint32_t c : through.all) {
      if (circuits_[c].explained || (circuits_[c].is_slow && marked && !(*marked)[c])) continue;
      score += circuits_[c].evidence;
      slow += circuits_[c].is_slow;
    }
    if (slow == 0) return -INFINITY;
    for (const uint32_t c : through.perhaps)
      if (open(c) && (!marked || (*marked)[c])) score += circuits_[c].evidence;
    return score;
  }

  // Names the part that explains most of the unexplained slow channels; on a tie, the smaller part. `sure`
  // compares its evidence with that of other parts for the same channels.
  bool name_best() {
    // Prior: one part of its kind in the whole job, including parts without measurements.
    const double per_host = -std::log(static_cast<double>(cluster_.hosts().size()));
    std::map<NetKind, double> prior{{NetKind::kNic, -std::log(static_cast<double>(cluster_.ranks().size()))},
                                    {NetKind::kNvlink, per_host},
                                    {NetKind::kHost, per_host},
                                    {NetKind::kLink, -std::log(static_cast<double>(links_))}};
    const std::pair<const Part, Through>* best = nullptr;
    double most = 0;
    for (const auto& entry : parts_)
      if (const double score = score_of(entry.second, prior[entry.first.kind], nullptr); score > most + 1e-9)
        best = &entry, most = score;
    if (!best) return false;
    std::vector<bool> marked(circuits_.size(), false);
    for (const auto* list : {&best->second.all, &best->second.perhaps})
      for (const uint32_t c : *list) marked[c] = open(c);
    double others = 0;
    for (const auto& entry : parts_)
      if (&entry != best) {
        const double score = score_of(entry.second, prior[entry.first.kind], &marked);
        others += std::exp(std::min(0.0, score - most));
      }
    NetEffect out;
    out.sure = static_cast<float>(1 / (1 + others));
    out.evidence = static_cast<float>(most);
    describe(best->first, out);
    return true;
  }

  void describe(const Part& part, NetEffect& out) {
    out.kind = part.kind;
    out.a = part.a;
    out.b = part.b;
    std::vector<double> logs;
    double worst = -1;
    std::vector<uint32_t> circuits = parts_[part].all;
    circuits.insert(circuits.end(), parts_[part].perhaps.begin(), parts_[part].perhaps.end());
    for (const uint32_t i : circuits) {
      Circuit& c = circuits_[i];
      if (c.explained || !c.is_slow) continue;
      c.explained = true;
      logs.push_back(c.slow);
      const uint32_t back = cluster_.channels()[c.channel].back;
      const uint32_t here = step_.local(c.channel), there = back == kNone ? kNone : step_.local(back);
      out.channels.push_back(here);
      if (there != kNone) out.channels.push_back(there);
      const double cost = on_path_[here] + (there == kNone ? 0 : on_path_[there]);
      out.cost += cost;
      if (cost > worst) {
        worst = cost;
        out.comm = cluster_.comms()[cluster_.channels()[c.channel].comm].id;
      }
    }
    if (!logs.empty()) out.ratio = std::exp(lower_median(logs));
    step_.result.network.push_back(out);
  }

  // Hosts below one slow switch are slow together. A single host explains their shared groups, and links
  // appear to explain the rest. So if hosts and links are named together, each host is tested alone: below
  // the switch, nearly all channels that leave a host are slow. If few such hosts explain all slow channels,
  // they replace the parts named since `from`.
  void find_switch(size_t from) {
    auto& named = step_.result.network;
    const std::span<const NetEffect> here(named.begin() + static_cast<ptrdiff_t>(from), named.end());
    const auto links = std::ranges::count(here, NetKind::kLink, &NetEffect::kind);
    const auto hosts = std::ranges::count(here, NetKind::kHost, &NetEffect::kind);
    if (links == 0 || links + hosts < 2 || links + hosts < std::ssize(here)) return;
    struct Border {
      size_t all = 0, slow = 0;
    };
    std::map<uint32_t, Border> borders;
    std::vector<std::vector<uint32_t>> slow_between;
    std::vector<uint32_t> ranks;
    for (uint32_t i = 0; i < circuits_.size(); ++i) {
      if (!circuits_[i].telling) continue;
      const std::vector<uint32_t> ends = hosts_of(i, ranks);
      if (ends.size() < 2) continue;
      for (const uint32_t h : ends) ++borders[h].all, borders[h].slow += circuits_[i].is_slow;
      if (circuits_[i].is_slow) slow_between.push_back(ends);
    }
    std::vector<uint32_t> below;
    for (const auto& [host, border] : borders)
      if (static_cast<double>(border.slow) >= kAllOfHost * static_cast<double>(border.all))
        below.push_back(host);
    const auto touches = [&](const std::vector<uint32_t>& ends) {
      return std::ranges::any_of(ends, [&](uint32_t h) { return std::ranges::binary_search(below, h); });
    };
    if (below.size() < 2 || 2 * below.size() > borders.size() || !std::ranges::all_of(slow_between, touches))
      return;
    std::ranges::stable_sort(below, std::greater<>(), [&](uint32_t h) { return borders[h].slow; });
    replace_by_hosts(from, below);
  }

  // The first host gets the whole cost: the removal of a single host saves nothing.
  void replace_by_hosts(size_t from, const std::vector<uint32_t>& hosts) {
    auto& named = step_.result.network;
    const NetEffect first = named[from];
    named.resize(from);
    for (Circuit& c : circuits_) c.explained = false;
    for (const uint32_t h : hosts) {
      NetEffect out;
      out.sure = first.sure;
      out.evidence = first.evidence;
      out.ratio = first.ratio;
      out.comm = first.comm;
      describe({NetKind::kHost, h, 0}, out);
    }
    NetEffect& all = named[from];
    for (size_t i = from + 1; i < named.size(); ++i) {
      all.channels.insert(all.channels.end(), named[i].channels.begin(), named[i].channels.end());
      all.cost += std::exchange(named[i].cost, 0);
      named[i].channels.clear();
    }
  }

  const Cluster& cluster_;
  const std::vector<double>& on_path_;
  Step& step_;
  std::vector<Circuit> circuits_;
  std::map<Part, Through> parts_;
  size_t links_ = 1;  // number of host pairs that communicate
};

}  // namespace

void Network::measure(const Cluster& cluster, Step& step) {
  FlatMap<uint32_t> by_key;
  std::vector<std::vector<float>> times;
  const Instance* before = nullptr;  // the last one with a kind
  for (Instance& instance : step.instances) {
    // All recorded members may have waited for a member without records. Small groups often do. In large
    // groups this is rare, and the median over operations excludes it.
    const CommInfo& comm = cluster.comms()[cluster.channels()[instance.channel].comm];
    const size_t missing = comm.reported_size - std::min<size_t>(comm.reported_size, comm.members.size());
    const bool absent =
        cluster.sizes_hold() && kOneAbsentOf * missing > comm.reported_size && !is_p2p(instance.op);
    instance.transfer_ms = absent ? -1 : transfer_of(cluster, step, instance);
    if (instance.count == 2 && is_p2p(instance.op)) mark_alone(step, instance);
    if (instance.transfer_ms < 0) continue;
    // The operations of a channel follow one another, and most are of one kind.
    const bool same = before && before->channel == instance.channel && before->op == instance.op &&
                      before->bytes == instance.bytes;
    if (!same) {
      const uint64_t key = kind_of(cluster, instance);
      const auto [at, fresh] = by_key.try_emplace(key, static_cast<uint32_t>(step.kinds.size()));
      if (fresh) {
        step.kinds.push_back({key, 0, 0});
        times.emplace_back();
      }
      instance.kind = *at;
    } else {
      instance.kind = before->kind;
    }
    before = &instance;
    times[instance.kind].push_back(static_cast<float>(instance.transfer_ms));
  }
  for (size_t k = 0; k < times.size(); ++k) step.kinds[k].here = quantile(times[k], kUsual);
}

void Network::learn(Step& step) {
  for (TransferKind& kind : step.kinds) {
    if (usual_.size() >= kKinds && !usual_.contains(kind.key)) {
      kind.usual = kind.here;
      continue;
    }
    std::vector<float>& past = usual_[kind.key];
    if (past.size() < kSteps) past.push_back(kind.here);
    std::vector<float> sorted = past;
    kind.usual = std::min(kind.here, quantile(sorted, 0.25));
  }
}

void Network::compare(Step& step) {
  for (Instance& instance : step.instances) {
    if (instance.transfer_ms < 0) continue;
    instance.usual_ms = step.kinds[instance.kind].usual;
    instance.slower_ms = std::max(0.0, instance.transfer_ms - instance.usual_ms);
  }
}

void Network::explain(const Cluster& cluster, const std::vector<double>& on_path, Step& step) {
  struct Times {
    std::vector<float> logs;
    double usual = 0;
  };
  std::vector<Times> list(step.channels.size());
  constexpr double kLeastMs = 0.005;  // below the resolution of timestamps
  for (const Instance& instance : step.instances) {
    if (instance.transfer_ms < 0) continue;
    Times& times = list[instance.local];
    times.logs.push_back(static_cast<float>(
        std::log(std::max(instance.transfer_ms, kLeastMs) / std::max(instance.usual_ms, kLeastMs))));
    times.usual += instance.usual_ms;
  }
  Explain explain(cluster, on_path, step);
  for (uint32_t c = 0; c < list.size(); ++c) {
    if (list[c].logs.empty()) continue;
    const uint32_t id = step.channels[c];
    const Channel& channel = cluster.channels()[id];
    double slow = lower_median(list[c].logs);
    if (channel.sender != kNone) {
      // Clock offsets between hosts lengthen one direction and shorten the other, so both directions count as
      // one.
      const uint32_t other = channel.back == kNone ? kNone : step.local(channel.back);
      if (other != kNone && !list[other].logs.empty()) {
        if (channel.back < id) continue;
        Times& back = list[other];
        const double there = std::exp(slow), here = std::exp(lower_median(back.logs));
        const double usual = std::max(list[c].usual + back.usual, kLeastMs);
        slow = std::log(std::max(there * list[c].usual + here * back.usual, kLeastMs) / usual);
      }
    }
    explain.add(id, slow, list[c].usual);
  }
  explain.run();
}

}  // namespace culprit::comm
