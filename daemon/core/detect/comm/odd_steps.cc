#include "core/detect/comm/odd_steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "core/detect/comm/bars.h"
#include "core/detect/comm/robust.h"
#include "core/detect/comm/spells.h"

namespace culprit::comm {
namespace {

// Share by which an irregular step exceeds the usual length; it also exceeds the spread of the steps.
constexpr double kOddWorth = 0.1;
// Minimum share of the step's additional time that a suspect's own excess explains.
constexpr double kExplains = 0.5;
// Accepted rate of lists with a wrong name, assuming events on random ranks. If events on other ranks confirm
// this assumption, the rate is kAlpha.
constexpr double kAlphaListed = 0.05;
// A network part must explain its slow channels better than all other parts together.
constexpr double kSureOfPart = 0.5;
// Half-life, in steps, of a suspect's score, which is a sum over its steps.
constexpr double kHalfLife = 24;
// If one rank in kMany pauses at the same time, the pause is the job's own work.
constexpr size_t kMany = 4;
// By NetKind.
constexpr SlowPart kPartKinds[] = {SlowPart::kNic, SlowPart::kNvlink, SlowPart::kLink, SlowPart::kHost};
constexpr size_t kSuspects = 16;  // maximum number of suspects, those of the longest steps

// Own time of a rank in a step beyond its peers, ms. `long_gap`: at one place; `rest`: at all others.
struct Own {
  double all = 0, long_gap = 0, rest = 0;
};

enum class Shape : uint8_t { kPause, kWork, kNetwork };

// Who may have made a step longer.
struct Candidate {
  SlowPart kind = SlowPart::kGpu;
  Shape shape = Shape::kWork;
  uint32_t a = 0, b = 0;             // index of a rank; of hosts, if kind is no kGpu or kNic
  std::vector<uint32_t> hosts = {};  // of a switch
  double own_ms = 0;                 // own excess
  // part of own_ms compared with other ranks: at one place, or at all other places
  double size_ms = 0;
  double next_ms = 0;  // largest size_ms on another host
  double cost_ms = 0;  // additional time of the step
  double share = 1;    // of the step's additional time
  double ratio = 1;
  uint32_t peers = 0;
  uint64_t comm = 0;
  uint32_t step = 0;
  bool odd = false;      // the step is irregular by its length
  bool by_data = false;  // its own batch may be the cause
};

class OddStepFinder {
 public:
  OddStepFinder(const StepsSeen& seen, const std::vector<bool>& explained)
      : seen_(seen), cluster_(seen.cluster), steps_(seen.steps), explained_(explained) {}

  OddSteps run() {
    find_odd();
    if (usual_ms_ <= 0) return std::move(out_);
    for (uint32_t s = 0; s < steps_.size(); ++s)
      if (!explained_[s] && !seen_.kinds.special[s]) find_candidates(s);
    join_candidates();
    count_others();
    for (Suspected& x : suspected_)
      if (is_listed(x)) out_.suspects.push_back(culprit_of(x));
    return std::move(out_);
  }

 private:
  // All candidates that are the same part with the same shape.
  struct Suspected {
    std::vector<Candidate> events;
    double level = 0;                     // minimum size of others' events
    size_t others = 0, others_alike = 0;  // others' events; those in steps of nearly usual length
    double cost() const {
      return std::accumulate(events.begin(), events.end(), 0.0,
                             [](double sum, const Candidate& c) { return sum + c.cost_ms; });
    }
  };

  void find_odd() {
    std::vector<double> times;
    for (const StepResult& s : steps_) times.push_back(s.step_ms);
    if (times.size() < 4) return;  // nothing to compare with
    const auto [middle, sigma] = spread_around(times);
    usual_ms_ = middle;  // as in kinds_of_steps()
    // The largest of n normal values lies at sqrt(2 ln n) deviations.
    const double far = std::max(kSigmas, std::sqrt(2 * std::log(static_cast<double>(times.size()) / kAlpha)));
    is_odd_.assign(times.size(), false);
    for (uint32_t s = 0; s < times.size(); ++s) {
      is_odd_[s] = times[s] > middle + std::max(far * sigma, kOddWorth * middle);
      if (is_odd_[s] && !explained_[s]) out_.steps.push_back(s);
    }
  }

  bool is_comparable(const StepResult& s, const RankStep& r) const {
    if (r.peers < 2 || s.step_ms <= 0) return false;
    const auto ns = static_cast<TimeNs>(s.step_ms * kNsPerMs);
    return !seen_.phases || !seen_.phases->covers(cluster_.ranks()[r.rank].rank, s.last_ns - ns, s.last_ns);
  }

  uint32_t host_of(uint32_t rank) const { return cluster_.ranks()[rank].host; }

  // Whether no common host explains both ranks. In a job on one host, all ranks are apart.
  bool apart(uint32_t a, uint32_t b) const {
    if (a == b) return false;
    return cluster_.hosts().size() < 2 || host_of(a) == kNone || host_of(a) != host_of(b);
  }

  static Own own_of(const RankStep& r) {
    const double all = std::max(r.excess, 0.f), long_gap = std::min<double>(all, std::max(r.largest, 0.f));
    return {all, long_gap, all - long_gap};
  }
  static double size_of(const Own& own, Shape shape) {
    return shape == Shape::kPause ? own.long_gap : own.rest;
  }
  // Whether its family, which has the same data, was equally late.
  static bool is_of_family(const RankStep& r) { return 2 * r.closer <= r.excess; }
  static Shape shape_of(const RankStep& r, const Own& own) {
    return 2 * own.long_gap >= own.all || r.gaps < kGaps ? Shape::kPause : Shape::kWork;
  }

  void find_candidates(uint32_t s) {
    const StepResult& step = steps_[s];
    std::optional<Candidate> best;
    const auto offer = [&](std::optional<Candidate> c) {
      if (c && holds(step, s, *c) && (!best || c->own_ms > best->own_ms)) best = c;
    };
    for (const Shape shape : {Shape::kPause, Shape::kWork}) {
      offer(slowest_rank(step, shape));
      offer(slowest_host(step, shape));
    }
    offer(slowest_part(step));
    if (best) candidates_.push_back(*best);
  }

  // Whether the candidate is an outlier and either explains most of an irregular step or has a high cost in a
  // regular one.
  bool holds(const StepResult& step, uint32_t s, Candidate& c) const {
    c.step = s;
    c.odd = is_odd_[s];
    if (c.size_ms < kOutlies * c.next_ms || c.own_ms < kWorth * step.step_ms) return false;
    const double longer = step.step_ms - usual_ms_;
    if (!c.odd) return c.cost_ms >= kAccuseWorth * (step.step_ms - c.cost_ms);
    // Lost records may divert the critical path; the step's length still shows the excess.
    const double cost = std::clamp(c.own_ms, c.cost_ms, std::max(c.cost_ms, longer));
    c.cost_ms = c.shape == Shape::kNetwork ? c.cost_ms : cost;
    c.share = std::min(1.0, c.cost_ms / longer);
    return c.share >= kExplains;
  }

  // A rank with an unrecorded wait for the suspect also has an excess. This excess costs nothing, so the
  // largest one is skipped; a second one counts.
  double next_of(const StepResult& step, Shape shape, auto is_apart) const {
    double first = 0, second = 0;
    const RankStep* largest = nullptr;
    for (const RankStep& r : step.ranks) {
      if (r.peers < 2 || !is_apart(r.rank)) continue;
      const double size = size_of(own_of(r), shape);
      if (size > first)
        second = std::exchange(first, size), largest = &r;
      else
        second = std::max(second, size);
    }
    return largest && largest->path <= 0 ? second : first;
  }

  // Whether the size exceeds the spread between ranks of this step.
  bool is_far(const StepResult& step, Shape shape, double size) const {
    std::vector<double> sizes;
    for (const RankStep& r : step.ranks)
      if (r.peers > 1) sizes.push_back(size_of(own_of(r), shape));
    if (shape == Shape::kPause && size < kPauseBeyond * quantile(sizes, 0.9)) return false;
    const double chances = static_cast<double>(sizes.size() * steps_.size());
    const auto [middle, sigma] = spread_around(std::move(sizes));
    return size > middle + std::sqrt(2 * std::log(chances / kAlpha)) * sigma;
  }

  std::optional<Candidate> slowest_rank(const StepResult& step, Shape shape) const {
    const RankStep* best = nullptr;
    const auto better = [&](const RankStep& r) {
      if (!best) return true;
      // An excess without a cost is a consequence of one with a cost, so cost decides first.
      const bool costs = r.path > kCostWorth * step.step_ms;
      if (costs != (best->path > kCostWorth * step.step_ms)) return costs;
      return size_of(own_of(r), shape) > size_of(own_of(*best), shape);
    };
    for (const RankStep& r : step.ranks)
      if (is_comparable(step, r) && !is_of_family(r) && own_of(r).all >= kWorth * step.step_ms && better(r))
        best = &r;
    if (!best) return std::nullopt;
    const RankStep& r = *best;
    const Own own = own_of(r);
    const double usual = r.self - r.excess;
    if (shape_of(r, own) != shape || own.all < kDevicesDiffer * usual) return std::nullopt;
    Candidate c;
    c.kind = SlowPart::kGpu;
    c.shape = shape;
    c.a = r.rank;
    c.size_ms = size_of(own, shape);
    c.own_ms = own.all - habit_of(r.rank);
    c.next_ms = next_of(step, shape, [&](uint32_t other) { return apart(r.rank, other); });
    c.cost_ms = std::max(0.f, r.path);
    c.ratio = usual > 0 ? r.self / usual : 1;
    c.peers = r.peers;
    c.by_data = shape == Shape::kWork && cluster_.family(r.rank) == kNone;
    if (!is_far(step, shape, c.size_ms)) return std::nullopt;
    return c;
  }

  // The slowest host, if three quarters of its ranks have a similar excess.
  std::optional<Candidate> slowest_host(const StepResult& step, Shape shape) const {
    if (cluster_.hosts().size() < 3) return std::nullopt;
    std::map<uint32_t, std::vector<const RankStep*>> by_host;
    for (const RankStep& r : step.ranks)
      if (is_comparable(step, r) && host_of(r.rank) != kNone) by_host[host_of(r.rank)].push_back(&r);
    Candidate c;
    c.kind = SlowPart::kHost;
    c.shape = shape;
    for (const auto& [host, ranks] : by_host) {
      std::vector<double> sizes, all;
      for (const RankStep* r : ranks) {
        sizes.push_back(size_of(own_of(*r), shape));
        all.push_back(own_of(*r).all);
      }
      if (sizes.size() < 2) continue;
      const double most = *std::ranges::max_element(sizes), shared = quantile(sizes, 0.25);
      if (shared < kAlike * most || shared <= c.size_ms) continue;
      c.a = host;
      c.size_ms = shared;
      c.own_ms = lower_median(all);
    }
    if (c.size_ms <= 0 || !fill_host(step, by_host[c.a], c)) return std::nullopt;
    return c;
  }

  bool fill_host(const StepResult& step, const std::vector<const RankStep*>& ranks, Candidate& c) const {
    double self = 0, usual = 0;
    size_t alike = 0;
    std::optional<uint32_t> data;
    c.by_data = c.shape == Shape::kWork;
    for (const RankStep* r : ranks) {
      alike += shape_of(*r, own_of(*r)) == c.shape;
      self += r->self, usual += r->self - r->excess;
      c.cost_ms += std::max(0.f, r->path);
      c.peers = std::max(c.peers, r->peers);
      const uint32_t its = cluster_.data_of(r->rank);
      c.by_data = c.by_data && its == data.value_or(its);
      data = its;
    }
    if (2 * alike < ranks.size() || self - usual < kDevicesDiffer * usual) return false;
    c.ratio = usual > 0 ? self / usual : 1;
    c.next_ms = next_of(step, c.shape, [&](uint32_t other) { return host_of(other) != c.a; });
    return is_far(step, c.shape, c.size_ms);
  }

  // Hosts with simultaneously slow networks share a switch.
  std::optional<Candidate> slowest_part(const StepResult& step) const {
    const NetEffect* best = nullptr;
    std::vector<uint32_t> hosts;
    for (const NetEffect& e : step.network) {
      if (!best || e.cost > best->cost) best = &e;
      if (e.kind == NetKind::kHost && e.sure > kSureOfPart) hosts.push_back(e.a);
    }
    if (!best || best->sure <= kSureOfPart) return std::nullopt;
    const bool is_switch = best->kind == NetKind::kHost && hosts.size() > 1;
    Candidate c;
    c.kind = is_switch ? SlowPart::kSwitch : kPartKinds[static_cast<size_t>(best->kind)];
    c.shape = Shape::kNetwork;
    c.a = best->a, c.b = best->b;
    for (const NetEffect& e : step.network)
      if (is_switch && e.kind == NetKind::kHost)
        c.cost_ms += e.cost;
      else if (&e != best)
        c.next_ms = std::max(c.next_ms, e.cost);
    if (is_switch)
      c.hosts = std::move(hosts), c.a = std::ranges::min(c.hosts);
    else
      c.cost_ms = best->cost;
    c.size_ms = c.own_ms = c.cost_ms;
    c.ratio = best->ratio;
    c.comm = best->comm;
    return c;
  }

  // The rank's regular excess (in three of four steps), which does not explain a single slow step.
  double habit_of(uint32_t rank) const {
    std::vector<double> all;
    for (uint32_t s = 0; s < steps_.size(); ++s) {
      if (seen_.kinds.special[s]) continue;
      const auto number = [this](const RankStep& r) { return cluster_.ranks()[r.rank].rank; };
      const auto& ranks = steps_[s].ranks;
      const auto at = std::ranges::lower_bound(ranks, cluster_.ranks()[rank].rank, {}, number);
      if (at != ranks.end() && at->rank == rank && at->peers > 1) all.push_back(own_of(*at).all);
    }
    return quantile(all, 0.25);
  }

  void join_candidates() {
    std::map<std::tuple<SlowPart, Shape, uint32_t, uint32_t>, Suspected> by_part;
    for (const Candidate& c : candidates_) by_part[{c.kind, c.shape, c.a, c.b}].events.push_back(c);
    for (auto& [key, x] : by_part) {
      std::vector<double> sizes;
      for (const Candidate& c : x.events) sizes.push_back(c.size_ms);
      x.level = lower_median(sizes) / kOutlies;
      suspected_.push_back(std::move(x));
    }
    std::stable_sort(suspected_.begin(), suspected_.end(),
                     [](const Suspected& a, const Suspected& b) { return a.cost() > b.cost(); });
    if (suspected_.size() > kSuspects) suspected_.resize(kSuspects);
  }

  bool is_elsewhere(const Candidate& c, uint32_t rank) const {
    return c.kind == SlowPart::kGpu ? apart(c.a, rank) : host_of(rank) != c.a;
  }

  static bool is_same(const Candidate& c, const NetEffect& e) {
    if (c.kind == SlowPart::kSwitch) return std::ranges::find(c.hosts, e.a) != c.hosts.end();
    return kPartKinds[static_cast<size_t>(e.kind)] == c.kind && e.a == c.a && e.b == c.b;
  }

  // Events of other parts in other steps, as large as the suspect's.
  void count_others() {
    for (uint32_t s = 0; s < steps_.size(); ++s) {
      if (seen_.kinds.special[s] || explained_[s]) continue;
      for (Suspected& x : suspected_) {
        const Candidate& c = x.events[0];
        if (std::ranges::any_of(x.events, [s](const Candidate& at) { return at.step == s; })) continue;
        if (c.shape == Shape::kNetwork) {
          for (const NetEffect& e : steps_[s].network) x.others += e.cost >= x.level && !is_same(c, e);
          x.others_alike = x.others;
          continue;
        }
        size_t others = 0;
        for (const RankStep& r : steps_[s].ranks)
          others += r.peers > 1 && is_elsewhere(c, r.rank) && size_of(own_of(r), c.shape) >= x.level;
        // A delay of many ranks is uneven work, such as a checkpoint that all write.
        if (c.shape == Shape::kPause && kMany * others >= steps_[s].ranks.size()) continue;
        x.others += others;
        // In much longer steps, the cause of the length also makes ranks differ more.
        if (steps_[s].step_ms - usual_ms_ <= kOutlies * kOutlies * x.level) x.others_alike += others;
      }
    }
  }

  // Whether the pause may be routine work: rank 0 logs and saves for all ranks.
  bool is_habit(const Candidate& c) const {
    return c.kind == SlowPart::kGpu && c.shape == Shape::kPause && cluster_.ranks()[c.a].rank == 0;
  }

  // Number of events, with neighbouring steps as one. Used if other parts have events too.
  static size_t spells_of(const Suspected& x) {
    size_t out = 1;
    for (size_t i = 1; i < x.events.size(); ++i) out += x.events[i].step > x.events[i - 1].step + 1;
    return out;
  }

  bool is_listed(const Suspected& x) const {
    const Candidate& c = x.events[0];
    if (is_habit(c)) return false;
    const auto n = x.events.size();
    const bool of_hosts = c.kind == SlowPart::kHost || c.kind == SlowPart::kNvlink;
    const auto parts = static_cast<double>(of_hosts ? cluster_.hosts().size() : cluster_.ranks().size());
    // Null hypothesis: each event hits a random part. Two pauses in regular steps are no event.
    const size_t others = n > 1 ? x.others_alike : x.others, events = others == 0 ? n : spells_of(x);
    const double alpha = others == 0 ? kAlphaListed : kAlpha;
    const bool all_odd = std::ranges::all_of(x.events, &Candidate::odd);
    if (events > 1 && (c.shape != Shape::kPause || all_odd || events > 2) &&
        recurrence_evidence(events, static_cast<double>(others + 1) / parts) >= std::log(parts / alpha))
      return true;
    const bool odd = std::ranges::any_of(x.events, &Candidate::odd);
    const bool long_enough =
        c.shape != Shape::kPause ||
        std::ranges::any_of(x.events, [](const Candidate& at) { return at.size_ms >= kCollectionMs; });
    return odd && others == 0 && long_enough && (n > 1 || (!c.by_data && is_only_one(c)));
  }

  // Whether no other step is as irregular without an explanation. Such a step may be the same event at
  // another rank.
  bool is_only_one(const Candidate& c) const {
    const double longer = steps_[c.step].step_ms - usual_ms_;
    return std::ranges::none_of(out_.steps, [&](uint32_t s) {
      return s != c.step && !is_candidate(s) && seen_.kinds.is_alike(steps_, s, longer);
    });
  }

  bool is_candidate(uint32_t s) const {
    return std::ranges::any_of(candidates_, [s](const Candidate& c) { return c.step == s; });
  }

  // Each event adds its explained share, reduced according to the next largest part.
  static double score_of(const std::vector<Candidate>& events) {
    double sum = 0;
    for (size_t i = 0; i < events.size(); ++i) {
      const Candidate& c = events[i];
      if (i > 0) sum *= std::exp2(-static_cast<double>(c.step - events[i - 1].step) / kHalfLife);
      sum += c.share * (1 - 0.5 * std::clamp(c.next_ms / c.size_ms, 0.0, 1.0));
    }
    return kPauseConfidence * (1 - std::exp2(-sum));
  }

  Culprit culprit_of(const Suspected& x) const {
    const Candidate& first = x.events[0];
    Culprit c;
    c.listed = true;
    c.kind = first.kind;
    c.confidence = score_of(x.events);
    c.comm = first.comm;
    c.events = x.events.size();
    const auto n = static_cast<double>(x.events.size());
    double own = 0, ratio = 0;
    for (const Candidate& at : x.events) {
      c.steps.push_back(at.step);
      c.costs.push_back(at.cost_ms);
      c.cost_ms += at.cost_ms / n;
      own += at.own_ms / n;
      ratio += at.ratio / n;
      c.peers = std::max(c.peers, at.peers);
    }
    c.excess_ms = own;
    c.ratio = ratio;
    c.stalls = first.kind == SlowPart::kGpu && first.shape == Shape::kPause;
    if (c.stalls) c.kind = SlowPart::kHost;
    place(first, c);
    return c;
  }

  void place(const Candidate& first, Culprit& c) const {
    if (first.kind == SlowPart::kGpu || first.kind == SlowPart::kNic) {
      c.ranks = {first.a};
      if (host_of(first.a) != kNone) c.hosts = {host_of(first.a)};
      return;
    }
    c.hosts = first.hosts;
    if (c.hosts.empty()) c.hosts = {first.a};
    if (first.kind == SlowPart::kLink) c.hosts.push_back(first.b);
    for (uint32_t r = 0; r < cluster_.ranks().size(); ++r)
      if (std::ranges::find(c.hosts, host_of(r)) != c.hosts.end()) c.ranks.push_back(r);
  }

  const StepsSeen& seen_;
  const Cluster& cluster_;
  const std::deque<StepResult>& steps_;
  const std::vector<bool>& explained_;
  double usual_ms_ = 0;
  std::vector<bool> is_odd_;  // by step
  std::vector<Candidate> candidates_;
  std::vector<Suspected> suspected_;  // highest cost first
  OddSteps out_;
};

}  // namespace

OddSteps explain_odd_steps(const StepsSeen& seen, const std::vector<bool>& explained) {
  return OddStepFinder(seen, explained).run();
}

}  // namespace culprit::comm
