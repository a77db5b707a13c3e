#include "core/sweep/judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace culprit::sweep {
namespace {

enum class LinkState : uint8_t { kOpen, kFine, kBad };

// Beyond this share of the members the cause is shared.
constexpr uint32_t kSharedFrom = 4;
constexpr uint32_t kBadLeast = 3;         // links of a host, where it has so many
constexpr uint32_t kWrongLinksLeast = 2;  // wrong bytes have no innocent cause
// Of a host or link that noise alone makes look slow in a whole sweep; estimated from the other pairs.
constexpr double kChance = 0.001;

constexpr double kSteady = 0.75;  // of a slow host's links

using States = std::map<Pair, LinkState>;

LinkState unreachable_state(const Link& link) {
  size_t failed = 0;
  for (const PairRun* run : link.runs) {
    if (run->answer == PairAnswer::kMeasured) return LinkState::kFine;
    failed += run->answer == PairAnswer::kNotReached;
  }
  return failed >= 2 ? LinkState::kBad : LinkState::kOpen;
}

LinkState wrong_state(const Link& link) {
  if (link.wrong > 0) return LinkState::kBad;
  return link.bytes > 0 ? LinkState::kFine : LinkState::kOpen;
}

// Slow in each run, but for those in which a processor may have been the reason.
LinkState flow_state(const Link& link, bool to_b, const Usual& all, const Usual& quiet) {
  size_t slow = 0, slow_quiet = 0, other = 0;
  for (const PairRun* run : link.runs) {
    const Flow& flow = to_b ? run->to_b : run->to_a;
    if (!flow.measured) continue;
    if (is_slow(flow, run->follow_up ? quiet : all, run->follow_up ? kSlowRate : kSuspectRate))
      ++slow, slow_quiet += run->follow_up;
    else if (!flow.disturbed || flow.rate >= kSuspectRate * all.rate.value_or(0))
      ++other;
  }
  if (slow > 0 && other == 0) return slow_quiet > 0 ? LinkState::kBad : LinkState::kOpen;
  return other > 0 ? LinkState::kFine : LinkState::kOpen;
}

// One direction is enough.
LinkState rate_state(const Link& link, const Usual& all, const Usual& quiet) {
  const LinkState to_b = flow_state(link, true, all, quiet), to_a = flow_state(link, false, all, quiet);
  if (to_a == LinkState::kBad || to_b == LinkState::kBad) return LinkState::kBad;
  return to_a == LinkState::kFine && to_b == LinkState::kFine ? LinkState::kFine : LinkState::kOpen;
}

LinkState latency_state(const Link& link, const Usual& all, const Usual& quiet) {
  bool late_quiet = false;
  for (const PairRun* run : link.runs) {
    if (run->latency_ns == kNoTime) continue;
    if (!is_late(*run, run->follow_up ? quiet : all, run->follow_up ? kHighLatency : kSuspectLatency))
      return LinkState::kFine;
    late_quiet |= run->follow_up;
  }
  return late_quiet ? LinkState::kBad : LinkState::kOpen;
}

// Each measurement of a run as a share of the usual; less is worse.
std::vector<double> shares_of(Trouble trouble, const PairRun& run, const Usual& usual) {
  std::vector<double> out;
  if (trouble == Trouble::kLatency) {
    if (usual.latency_ns && run.latency_ns != kNoTime)
      out.push_back(*usual.latency_ns / std::max(static_cast<double>(run.latency_ns), 1.0));
    return out;
  }
  for (const Flow* flow : {&run.to_a, &run.to_b})
    if (usual.rate && flow->measured) out.push_back(flow->most / std::max(*usual.rate, 1.0));
  return out;
}

bool is_measured(const PairRun& run) { return run.answer == PairAnswer::kMeasured; }

// The known links of each member: the other end, and whether the link is bad.
using Graph = std::vector<std::vector<std::pair<uint32_t, bool>>>;

Graph graph_of(uint32_t members, const States& states) {
  Graph out(members);
  for (const auto& [pair, state] : states) {
    if (state == LinkState::kOpen) continue;
    out[pair.first].emplace_back(pair.second, state == LinkState::kBad);
    out[pair.second].emplace_back(pair.first, state == LinkState::kBad);
  }
  return out;
}

// The links of one member, but for those to members that were named before.
struct Degree {
  uint32_t bad = 0, tried = 0;
  std::vector<uint32_t> peers;  // of the bad ones
};

Degree degree_of(uint32_t member, const Graph& graph, const std::set<uint32_t>& named) {
  Degree out;
  for (const auto& [peer, bad] : graph[member]) {
    if (named.contains(peer)) continue;
    ++out.tried;
    if (bad) ++out.bad, out.peers.push_back(peer);
  }
  return out;
}

// Whether the other ends of most bad links are fine with most others; a few may be bad themselves.
// `without`: the member itself, and those that were named before.
bool peers_are_fine(const Degree& of, uint32_t least, const Graph& graph, const std::set<uint32_t>& without) {
  const auto fine = std::ranges::count_if(of.peers, [&](uint32_t peer) {
    const Degree d = degree_of(peer, graph, without);
    return 2 * d.bad < d.tried;
  });
  return static_cast<uint32_t>(fine) >= least && 2 * static_cast<uint32_t>(fine) > of.bad;
}

struct Blame {
  std::map<uint32_t, Degree> hosts;
  std::vector<Pair> links;  // bad ones that no named host explains
};

// `least` bad links make a host bad, if they are most of its links, or if `alone` suffices.
Blame blame(uint32_t members, const States& states, uint32_t least, uint32_t alone) {
  Blame out;
  const Graph graph = graph_of(members, states);
  std::set<uint32_t> named;
  for (bool more = true; more;) {
    more = false;
    uint32_t worst = 0;
    Degree most;
    for (uint32_t member = 0; member < members; ++member) {
      if (named.contains(member)) continue;
      Degree d = degree_of(member, graph, named);
      if (d.bad < least || (2 * d.bad <= d.tried && d.bad < alone)) continue;
      std::set<uint32_t> without = named;
      without.insert(member);
      if (!peers_are_fine(d, least, graph, without)) continue;
      if (d.bad <= most.bad) continue;
      worst = member, most = std::move(d);
    }
    if (most.bad == 0) break;
    named.insert(worst);
    out.hosts.emplace(worst, std::move(most));
    more = true;
  }
  for (const auto& [pair, state] : states)
    if (state == LinkState::kBad && !named.contains(pair.first) && !named.contains(pair.second))
      out.links.push_back(pair);
  return out;
}

// ---- the values of a finding

double median_value(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void add_values(const std::map<Pair, Link>& links, const Usual& usual, const States& states,
                SweepFinding& f) {
  std::vector<double> values;
  double wrong = 0, bytes = 0;
  for (const auto& [pair, link] : links) {
    const auto has = [&](uint32_t m) { return std::ranges::find(f.members, m) != f.members.end(); };
    const bool its = f.of == SweepFinding::Of::kHost ? has(pair.first) || has(pair.second)
                                                     : has(pair.first) && has(pair.second);
    if (!its || states.at(pair) != LinkState::kBad) continue;
    wrong += static_cast<double>(link.wrong);
    bytes += static_cast<double>(link.bytes);
    if (f.trouble == Trouble::kSlow && link.rate) values.push_back(*link.rate);
    if (f.trouble == Trouble::kLatency && link.latency_ns) values.push_back(*link.latency_ns);
  }
  if (f.trouble == Trouble::kWrongBytes) f.figure = wrong, f.usual = bytes;
  if (f.trouble == Trouble::kSlow) f.figure = median_value(values), f.usual = usual.rate.value_or(0);
  if (f.trouble == Trouble::kLatency) f.figure = median_value(values), f.usual = usual.latency_ns.value_or(0);
}

class Judge {
 public:
  Judge(uint32_t members, std::span<const PairRun> runs)
      : members_(members),
        links_(links_of(runs)),
        all_(usual_of_all(members, runs)),
        quiet_(usual_of(members, runs)) {}

  void judge(Trouble trouble, std::vector<SweepFinding>& out) {
    trouble_ = trouble;
    out_ = &out;
    states_.clear();
    for (const auto& [pair, link] : links_) states_[pair] = state_of(pair, link);
    measure_noise();
    find_suspects();
    const uint32_t least = trouble == Trouble::kWrongBytes ? kWrongLinksLeast : kBadLeast;
    // Wrong bytes may come now and then: three links of one host are no chance.
    const uint32_t alone = trouble == Trouble::kWrongBytes ? kBadLeast : members_;
    Blame blamed = blame(members_, states_, std::min(least, std::max(members_ - 1, 2u)), alone);
    std::erase_if(blamed.hosts, [&](const auto& host) {
      return !is_steady(host.first) || noise_of(static_cast<double>(members_), [&](const Pair& pair) {
                                         return pair.first == host.first || pair.second == host.first;
                                       }) > kChance;
    });
    add_hosts(blamed);
    add_links(blamed);
  }

 private:
  LinkState state_of(const Pair& pair, const Link& link) const {
    // What a named host or link explains is no second finding.
    if (explained_.contains(pair.first) || explained_.contains(pair.second) ||
        explained_links_.contains(pair))
      return LinkState::kOpen;
    switch (trouble_) {
      case Trouble::kUnreachable:
        return unreachable_state(link);
      case Trouble::kWrongBytes:
        return wrong_state(link);
      case Trouble::kSlow:
        return rate_state(link, all_, quiet_);
      case Trouble::kLatency:
        return latency_state(link, all_, quiet_);
    }
    return LinkState::kOpen;
  }

  // A slow host sends slowly, or receives slowly, with nearly all peers.
  bool is_steady(uint32_t host) const {
    if (trouble_ != Trouble::kSlow) return true;
    size_t out = 0, in = 0, tried = 0;
    for (const auto& [pair, link] : links_) {
      if (states_.at(pair) == LinkState::kOpen || (pair.first != host && pair.second != host)) continue;
      ++tried;
      out += flow_state(link, pair.first == host, all_, quiet_) == LinkState::kBad;
      in += flow_state(link, pair.second == host, all_, quiet_) == LinkState::kBad;
    }
    return static_cast<double>(std::max(out, in)) >= kSteady * static_cast<double>(tried);
  }

  bool has_noise() const { return trouble_ == Trouble::kSlow || trouble_ == Trouble::kLatency; }

  // Quiet measurements of links that are fine: what noise does.
  void measure_noise() {
    noise_.clear();
    for (const auto& [pair, link] : links_) {
      if (states_.at(pair) != LinkState::kFine) continue;
      for (const PairRun* run : link.runs)
        if (run->follow_up && is_measured(*run))
          for (const double share : shares_of(trouble_, *run, quiet_)) noise_.push_back(share);
    }
  }

  // A link that looks bad, though it may not have run often enough.
  bool looks_bad(const Pair& pair, const Link& link) const {
    const LinkState state = states_.at(pair);
    if (state != LinkState::kOpen) return state == LinkState::kBad;
    return std::ranges::any_of(link.runs, [&](const PairRun* run) {
      if (trouble_ == Trouble::kUnreachable) return run->answer == PairAnswer::kNotReached;
      if (trouble_ == Trouble::kLatency) return is_late(*run, all_, kSuspectLatency);
      return trouble_ == Trouble::kSlow &&
             (is_slow(run->to_a, all_, kSuspectRate) || is_slow(run->to_b, all_, kSuspectRate));
    });
  }

  // Members most of whose links look bad.
  void find_suspects() {
    std::map<uint32_t, std::pair<size_t, size_t>> links;
    for (const auto& [pair, link] : links_) {
      const bool bad = looks_bad(pair, link);
      for (const uint32_t member : {pair.first, pair.second})
        links[member].first += bad, ++links[member].second;
    }
    suspects_.clear();
    for (const auto& [member, count] : links)
      if (2 * count.first > count.second) suspects_.insert(member);
  }

  // Expected number, among `many`, of those whose quiet runs are all as bad by noise.
  template <class Its>
  double noise_of(double many, const Its& its) const {
    if (!has_noise()) return 0;
    std::vector<double> shares;  // the worse one of each bad run
    for (const auto& [pair, link] : links_) {
      if (!its(pair) || states_.at(pair) != LinkState::kBad) continue;
      for (const PairRun* run : link.runs)
        if (const auto of = shares_of(trouble_, *run, quiet_); run->follow_up && !of.empty())
          if (const double least = std::ranges::min(of); least < bar()) shares.push_back(least);
    }
    if (shares.empty()) return many;
    const double best = std::ranges::max(shares);
    const auto as_bad = std::ranges::count_if(noise_, [&](double share) { return share <= best; });
    const double chance = static_cast<double>(as_bad + 1) / static_cast<double>(noise_.size() + 2);
    return many * std::pow(chance, static_cast<double>(shares.size()));
  }
  double bar() const { return trouble_ == Trouble::kSlow ? kSlowRate : 1 / kHighLatency; }

  void add(SweepFinding f) {
    f.trouble = trouble_;
    add_values(links_, quiet_, states_, f);
    out_->push_back(std::move(f));
  }

  // Hosts that are fine with each other and bad with others share what is bad. These hosts, with the member.
  std::set<uint32_t> sharing(uint32_t member) const {
    std::set<uint32_t> out;
    for (const uint32_t other : suspects_) {
      if (other == member) continue;
      const auto state = states_.find({std::min(member, other), std::max(member, other)});
      if (state != states_.end() && state->second == LinkState::kFine) out.insert({member, other});
    }
    return out;
  }

  void add_hosts(const Blame& blamed) {
    const bool too_many = blamed.hosts.size() > std::max<size_t>(1, members_ / kSharedFrom);
    std::set<uint32_t> group;
    for (const auto& [member, d] : blamed.hosts) {
      explained_.insert(member);
      const std::set<uint32_t> shared = sharing(member);
      group.insert(shared.begin(), shared.end());
      if (too_many)
        group.insert(member);
      else if (shared.empty())
        add({trouble_, SweepFinding::Of::kHost, {member}, d.bad, d.tried, 0, 0});
    }
    if (!group.empty()) add({trouble_, SweepFinding::Of::kGroup, {group.begin(), group.end()}, 0, 0, 0, 0});
    explained_.insert(group.begin(), group.end());
  }

  void add_links(const Blame& blamed) {
    std::vector<Pair> links;
    const auto many = static_cast<double>(links_.size());
    for (const Pair& pair : blamed.links)
      if (!explained_.contains(pair.first) && !explained_.contains(pair.second) &&
          noise_of(many, [&](const Pair& one) { return one == pair; }) <= kChance)
        links.push_back(pair);
    const bool too_many = links.size() > std::max<size_t>(2, members_ / kSharedFrom);
    SweepFinding group{trouble_, SweepFinding::Of::kGroup, {}, 0, 0, 0, 0};
    std::set<uint32_t> ends;
    for (const Pair& pair : links) {
      explained_links_.insert(pair);
      ends.insert({pair.first, pair.second});
      if (!too_many) add({trouble_, SweepFinding::Of::kLink, {pair.first, pair.second}, 1, 1, 0, 0});
    }
    if (!too_many) return;
    group.members.assign(ends.begin(), ends.end());
    add(group);
  }

  const uint32_t members_;
  const std::map<Pair, Link> links_;
  const Usual all_, quiet_;
  Trouble trouble_ = Trouble::kUnreachable;  // under judgement, with what follows
  std::vector<SweepFinding>* out_ = nullptr;
  States states_;
  std::vector<double> noise_;
  std::set<uint32_t> suspects_;
  std::set<uint32_t> explained_;
  std::set<Pair> explained_links_;
};

}  // namespace

SweepVerdict judge_sweep(uint32_t members, std::span<const PairRun> runs) {
  SweepVerdict out;
  out.usual = usual_of(members, runs);
  std::vector<bool> answered(members, false);
  size_t disturbed = 0, flows = 0;
  for (const PairRun& run : runs) {
    if (run.answer != PairAnswer::kNoReport) answered[run.a] = answered[run.b] = true;
    for (const Flow* flow : {&run.to_b, &run.to_a})
      if (flow->measured) ++flows, disturbed += flow->disturbed;
  }
  for (uint32_t member = 0; member < members; ++member)
    if (!answered[member]) out.unknown.push_back(member);
  for (const auto& [pair, link] : links_of(runs)) out.measured += link.rate || link.bytes > 0;
  out.rates_open = !out.usual.rate || 2 * disturbed > flows;
  Judge judge(members, runs);
  for (const Trouble trouble : kTroubles) judge.judge(trouble, out.findings);
  std::ranges::stable_sort(out.findings, {}, [](const SweepFinding& f) { return f.of; });
  return out;
}

}  // namespace culprit::sweep
