#include "core/detect/comm/judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/detect/comm/robust.h"

namespace culprit::comm {
namespace {

// An excess counts from three standard deviations of what ranks differ by in this job, and from a fiftieth of
// the step on: below, nobody would act on it.
constexpr double kSigmas = 3, kWorth = 0.02;
// A culprit's step shows it: what stays hidden in one of ten is a step that was short for other reasons.
constexpr double kShows = 0.9;
// A device that is slow is so in all that it does: three quarters of its time, over as many places as tell.
constexpr double kEven = 0.75;
constexpr uint32_t kGaps = 8;
// One false accusation in a hundred jobs.
constexpr double kAlpha = 0.01;
// A cost on the step's path below this share of the step makes no step irregular.
constexpr double kCostWorth = 0.01;

// Evidence over steps: a sum that begins again where it falls to nothing, so that a fault which begins late
// is found as surely as one that was there from the first step.
struct Run {
  double best = 0;
  size_t from = 0, to = 0;  // steps [from, to] of it
};

struct Mark {
  uint32_t step = 0;
  bool hit = false;
  bool even = false;  // it was, at nearly all places alike
};

// `floor`: how often innocents are hit; `even_floor`: of those, how often at all places alike.
Run strongest(const std::vector<Mark>& marks, double floor, double even_floor) {
  const double hit = std::log(kShows / floor), miss = std::log((1 - kShows) / (1 - floor));
  const double even = std::log(kShows / even_floor);
  Run run;
  double sum = 0;
  size_t from = 0;
  for (size_t i = 0; i < marks.size(); ++i) {
    if (sum <= 0) sum = 0, from = i;
    sum += (marks[i].hit ? hit : miss) + (marks[i].even ? even : 0);
    if (sum > run.best) run = {sum, from, i};
  }
  return run;
}

double confidence_of(double evidence, double bar) {
  return std::clamp(1 / (1 + std::exp(-(evidence - bar + 4) / 4)), 0.0, 0.99);
}

class Judge {
 public:
  Judge(const Cluster& cluster, const std::deque<StepResult>& steps) : cluster_(cluster), steps_(steps) {}

  Judgement run() {
    find_scale();
    find_ranks();
    find_network();
    merge_switch();
    merge_hosts();
    choose_steps();
    find_odd_steps();
    std::stable_sort(out_.culprits.begin(), out_.culprits.end(), [](const Culprit& a, const Culprit& b) {
      return a.cost_ms * static_cast<double>(a.steps.size()) >
             b.cost_ms * static_cast<double>(b.steps.size());
    });
    return std::move(out_);
  }

 private:
  struct OfRank {
    std::vector<Mark> marks;
    std::vector<float> path, excess, usual;
    uint32_t hits = 0, even = 0, peers = 0;
  };

  // What ranks of one role, and of one family, differ by, relative to the step: the middle of all that differ
  // at all.
  void find_scale() {
    std::vector<float> role, family;
    for (const StepResult& s : steps_)
      for (const RankStep& r : s.ranks) {
        if (r.peers < 2 || s.step_ms <= 0) continue;
        if (r.excess != 0) role.push_back(std::abs(r.excess) / static_cast<float>(s.step_ms));
        if (r.closer != 0) family.push_back(std::abs(r.closer) / static_cast<float>(s.step_ms));
      }
    sigma_ = kMadToSigma * lower_median(role);
    family_sigma_ = kMadToSigma * lower_median(family);
  }

  void find_ranks() {
    of_.assign(cluster_.ranks().size(), {});
    for (uint32_t s = 0; s < steps_.size(); ++s)
      for (const RankStep& r : steps_[s].ranks) {
        if (r.peers < 2 || steps_[s].step_ms <= 0) continue;
        OfRank& of = of_[r.rank];
        const double x = r.excess / steps_[s].step_ms, y = r.closer / steps_[s].step_ms;
        const bool by_family = y > kSigmas * family_sigma_ && y > kWorth;
        const bool hit = (x > kSigmas * sigma_ && x > kWorth) || by_family;
        const bool even = hit && r.even >= kEven && r.gaps >= kGaps;
        of.marks.push_back({s, hit, even});
        of.path.push_back(r.path);
        of.excess.push_back(by_family ? std::max(r.closer, r.excess) : r.excess);
        of.usual.push_back(r.self - of.excess.back());
        of.peers = std::max(of.peers, r.peers);
        of.hits += hit;
        of.even += even;
      }
    double observed = 0;
    std::vector<std::pair<double, uint32_t>> rates;
    for (uint32_t i = 0; i < of_.size(); ++i) {
      if (of_[i].marks.empty()) continue;
      observed += static_cast<double>(of_[i].marks.size());
      rates.emplace_back(static_cast<double>(of_[i].hits) / static_cast<double>(of_[i].marks.size()), i);
    }
    if (rates.empty()) return;
    bar_ = std::log(std::max(observed, 1.0) / kAlpha);
    // How often innocents are hit, from the three quarters that are hit least.
    std::sort(rates.begin(), rates.end());
    double hits = 1, of = 20, even = 0;
    for (size_t i = 0; i < (3 * rates.size() + 3) / 4; ++i) {
      hits += of_[rates[i].second].hits;
      even += of_[rates[i].second].even;
      of += static_cast<double>(of_[rates[i].second].marks.size());
    }
    floor_ = std::min(hits / of, 0.5);
    // Of innocents whose work comes in pieces of its own size, one in fifty looks so by chance.
    even_floor_ = std::min((even + 0.02) / hits, kShows);
    for (uint32_t i = 0; i < of_.size(); ++i) add_rank(i);
  }

  void add_rank(uint32_t rank) {
    const OfRank& of = of_[rank];
    const Run run = strongest(of.marks, floor_, even_floor_);
    if (run.best < bar_) return;
    Culprit c;
    c.kind = "gpu";
    c.ranks = {rank};
    if (const uint32_t host = cluster_.ranks()[rank].host; host != kNone) c.hosts = {host};
    c.evidence = run.best;
    c.bar = bar_;
    c.peers = of.peers;
    double excess = 0, usual = 0;
    for (size_t i = run.from; i <= run.to; ++i) {
      if (!of.marks[i].hit) continue;
      c.steps.push_back(of.marks[i].step);
      c.costs.push_back(std::max(0.f, of.path[i]));
      excess += of.excess[i];
      usual += of.usual[i];
    }
    c.ratio = usual > 0 ? 1 + excess / usual : 1;
    c.excess_ms = excess / static_cast<double>(c.steps.size());
    out_.culprits.push_back(std::move(c));
  }

  void find_network() {
    using Key = std::tuple<NetKind, uint32_t, uint32_t>;
    std::map<Key, std::vector<std::pair<uint32_t, const NetEffect*>>> seen;
    for (uint32_t s = 0; s < steps_.size(); ++s)
      for (const NetEffect& e : steps_[s].network) seen[{e.kind, e.a, e.b}].emplace_back(s, &e);
    if (seen.empty()) return;
    const auto n = static_cast<double>(steps_.size());
    // Parts that are named: once each by chance would be this often.
    double named = 1, of = 20;
    const auto parts = static_cast<double>(cluster_.ranks().size());
    of += parts * n;
    std::vector<size_t> counts;
    for (const auto& [key, list] : seen) counts.push_back(list.size());
    std::sort(counts.begin(), counts.end());
    for (size_t i = 0; i < 3 * counts.size() / 4; ++i) named += static_cast<double>(counts[i]);
    const double floor = std::min(named / of, 0.5), bar = std::log(parts * n / kAlpha);
    for (const auto& [key, list] : seen) {
      std::vector<Mark> marks;
      for (uint32_t s = 0; s < steps_.size(); ++s) marks.push_back({s, false, false});
      for (const auto& [s, effect] : list) marks[s].hit = true;
      const Run run = strongest(marks, floor, kShows);
      if (run.best < bar) continue;
      add_network(list, run, bar);
    }
  }

  void add_network(const std::vector<std::pair<uint32_t, const NetEffect*>>& list, const Run& run,
                   double bar) {
    const NetEffect& first = *list.front().second;
    Culprit c;
    c.evidence = run.best;
    c.bar = bar;
    c.comm = first.comm;
    std::vector<double> ratios;
    uint32_t ties = 0;
    for (const auto& [s, effect] : list) {
      if (s < run.from || s > run.to) continue;
      c.steps.push_back(s);
      c.costs.push_back(effect->cost);
      ratios.push_back(effect->ratio);
      ties = std::max(ties, effect->ties);
    }
    c.ratio = lower_median(ratios);
    constexpr const char* kKinds[] = {"nic", "nvlink", "link", "host"};
    c.kind = kKinds[static_cast<size_t>(first.kind)];
    if (first.kind == NetKind::kNic) {
      c.ranks = {first.a};
      if (const uint32_t host = cluster_.ranks()[first.a].host; host != kNone) c.hosts = {host};
    } else {
      c.hosts = {first.a};
      if (first.kind == NetKind::kLink) c.hosts.push_back(first.b);
      add_ranks_of_hosts(c);
    }
    // Others explain it as well: it is named with what remains of the certainty.
    c.confidence = ties > 0 ? 1.0 / (ties + 1) : 0;
    out_.culprits.push_back(std::move(c));
  }

  void add_ranks_of_hosts(Culprit& c) const {
    for (uint32_t r = 0; r < cluster_.ranks().size(); ++r)
      if (std::find(c.hosts.begin(), c.hosts.end(), cluster_.ranks()[r].host) != c.hosts.end())
        c.ranks.push_back(r);
  }

  // Hosts whose ways out are slow at the same time hang on one switch.
  void merge_switch() {
    std::vector<size_t> hosts;
    for (size_t i = 0; i < out_.culprits.size(); ++i)
      if (out_.culprits[i].kind == "host" && out_.culprits[i].peers == 0) hosts.push_back(i);
    if (hosts.size() < 2) return;
    Culprit& first = out_.culprits[hosts[0]];
    std::map<uint32_t, double> costs;
    for (const size_t i : hosts) {
      const Culprit& other = out_.culprits[i];
      for (size_t k = 0; k < other.steps.size(); ++k) costs[other.steps[k]] += other.costs[k];
      if (i == hosts[0]) continue;
      first.hosts.push_back(other.hosts[0]);
      first.ranks.insert(first.ranks.end(), other.ranks.begin(), other.ranks.end());
      first.evidence = std::max(first.evidence, other.evidence);
    }
    first.kind = "switch";
    set_costs(first, costs);
    for (size_t k = hosts.size(); k > 1; --k)
      out_.culprits.erase(out_.culprits.begin() + static_cast<ptrdiff_t>(hosts[k - 1]));
  }

  static void set_costs(Culprit& c, const std::map<uint32_t, double>& costs) {
    c.steps.clear();
    c.costs.clear();
    for (const auto& [step, cost] : costs) {
      c.steps.push_back(step);
      c.costs.push_back(cost);
    }
  }

  // A host is at fault where most of its ranks are, and it has several.
  void merge_hosts() {
    std::map<uint32_t, std::vector<size_t>> slow;
    std::map<uint32_t, uint32_t> ranks;
    for (uint32_t r = 0; r < of_.size(); ++r)
      if (!of_[r].marks.empty() && cluster_.ranks()[r].host != kNone) ++ranks[cluster_.ranks()[r].host];
    for (size_t i = 0; i < out_.culprits.size(); ++i)
      if (out_.culprits[i].kind == "gpu" && !out_.culprits[i].hosts.empty())
        slow[out_.culprits[i].hosts[0]].push_back(i);
    std::set<size_t> gone;
    for (const auto& [host, list] : slow) {
      if (list.size() < 2 || 4 * list.size() < 3 * ranks[host]) continue;
      Culprit& c = out_.culprits[list[0]];
      c.kind = "host";
      std::map<uint32_t, double> costs;
      for (const size_t i : list) {
        const Culprit& other = out_.culprits[i];
        if (i != list[0]) c.ranks.push_back(other.ranks[0]);
        c.evidence = std::max(c.evidence, other.evidence);
        for (size_t k = 0; k < other.steps.size(); ++k) costs[other.steps[k]] += other.costs[k];
        if (i != list[0]) gone.insert(i);
      }
      set_costs(c, costs);
    }
    for (auto i = gone.rbegin(); i != gone.rend(); ++i)
      out_.culprits.erase(out_.culprits.begin() + static_cast<ptrdiff_t>(*i));
  }

  // Steps in which a culprit cost nothing were not made irregular by it. One that never did is none, unless
  // it only hides behind another: it would be the next.
  void choose_steps() {
    std::vector<Culprit> kept;
    double most = 0;
    for (const Culprit& c : out_.culprits)
      if (!c.costs.empty()) most = std::max(most, *std::max_element(c.costs.begin(), c.costs.end()));
    for (Culprit& c : out_.culprits) {
      std::vector<uint32_t> steps;
      std::vector<double> costs;
      double sum = 0;
      for (size_t i = 0; i < c.steps.size(); ++i) {
        if (c.costs[i] < kCostWorth * steps_[c.steps[i]].step_ms) continue;
        steps.push_back(c.steps[i]);
        costs.push_back(c.costs[i]);
        sum += c.costs[i];
      }
      c.hidden = steps.empty();
      if (c.hidden && (c.excess_ms < 0.5 * most || most <= 0)) continue;
      if (!c.hidden) {
        c.steps = std::move(steps);
        c.costs = std::move(costs);
        c.cost_ms = sum / static_cast<double>(c.steps.size());
      }
      const double sure = confidence_of(c.evidence, c.bar);
      c.confidence = c.confidence > 0 ? std::min(c.confidence, sure) : sure;
      kept.push_back(std::move(c));
    }
    out_.culprits = std::move(kept);
  }

  // Steps that took much longer than their like, of which no culprit is the reason.
  void find_odd_steps() {
    std::set<uint32_t> told;
    for (const Culprit& c : out_.culprits)
      if (!c.hidden) told.insert(c.steps.begin(), c.steps.end());
    std::vector<double> times;
    for (const StepResult& s : steps_) times.push_back(s.step_ms);
    if (times.size() < 4) return;  // nothing to compare with
    std::vector<double> copy = times;
    const double middle = lower_median(copy);
    for (double& t : copy) t = std::abs(t - middle);
    // The largest of n normal values lies at sqrt(2 ln n) deviations.
    const double sigma = kMadToSigma * lower_median(copy);
    const double far = std::max(kSigmas, std::sqrt(2 * std::log(static_cast<double>(times.size()) / kAlpha)));
    for (uint32_t s = 0; s < times.size(); ++s)
      if (!told.contains(s) && times[s] > middle + std::max(far * sigma, 0.1 * middle)) out_.odd.push_back(s);
  }

  const Cluster& cluster_;
  const std::deque<StepResult>& steps_;
  std::vector<OfRank> of_;
  double sigma_ = 0, family_sigma_ = 0, floor_ = 0.01, even_floor_ = 0.02, bar_ = 0;
  Judgement out_;
};

}  // namespace

Judgement judge(const Cluster& cluster, const std::deque<StepResult>& steps) {
  return Judge(cluster, steps).run();
}

}  // namespace culprit::comm
