#include "core/detect/comm/judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "core/detect/comm/bars.h"
#include "core/detect/comm/odd_steps.h"
#include "core/detect/comm/robust.h"
#include "core/detect/comm/spells.h"
#include "core/detect/comm/step_kinds.h"

namespace culprit::comm {
namespace {

// Slow steps needed to accuse. Two pauses of a process may be chance or routine; two slow steps may be one
// event.
constexpr uint32_t kHits = 3;
constexpr double kPauseWorth = 0.1;  // smallest cost of a pause, as a share of the step
// A single event is reported only in short traces, and never as a verdict.
constexpr size_t kPauseSteps = 24;
// A slow device is slow in all its work: in three quarters of its time, over at least kGaps places.
constexpr double kEven = 0.75;
// Ranks of a small job: each rank contributes at least an eighth of the spread.
constexpr size_t kFew = 8;
// Accepted rate of false accusations per host, if a finding also requires trouble reported by the machine.
constexpr double kAlphaOfHost = 0.05;
// Shortest interval, in steps, at which rank 0 logs or saves. Most steps are near a multiple of any shorter
// interval.
constexpr int64_t kHabit = 4;
// A network part is named if at most two others explain the slowdown equally well.
constexpr double kNamed = 0.3;
constexpr size_t kCheap = 4;  // maximum number of cheap culprits

class Judge {
 public:
  Judge(const Cluster& cluster, const std::deque<StepResult>& steps, bool live, const Announced* phases)
      : cluster_(cluster), steps_(steps), live_(live), phases_(phases), kinds_(kinds_of_steps(steps)) {}

  Judgement run() {
    find_scale();
    find_ranks();
    find_network();
    merge_switch();
    merge_hosts();
    find_pause();
    choose_steps();
    find_odd_steps();
    std::stable_sort(out_.culprits.begin(), out_.culprits.end(), [](const Culprit& a, const Culprit& b) {
      return a.cost_ms * static_cast<double>(a.steps.size()) >
             b.cost_ms * static_cast<double>(b.steps.size());
    });
    return std::move(out_);
  }

 private:
  struct Sums {
    double observed = 0, hits = 0, even = 0;
  };
  size_t host_or_last(uint32_t rank) const {
    return std::min<size_t>(cluster_.ranks()[rank].host, cluster_.hosts().size());
  }

  struct OfRank {
    std::vector<Mark> marks;
    std::vector<float> path, excess, usual;
    uint32_t hits = 0, even = 0, peers = 0;
  };

  // Spread of ranks of one role, and of one family, relative to the step. Only nonzero differences count.
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
    for (uint32_t i = 0; i < cluster_.ranks().size() && cluster_.ranks().size() <= kFew; ++i)
      if (const double sigma = sigma_without(i); sigma > 0) sigma_without_[i] = sigma;
  }

  // Spread of a small job without this rank, whose own excess would raise the limit. 0: the other ranks have
  // no peers.
  double sigma_without(uint32_t rank) const {
    std::vector<float> values;
    for (uint32_t s = 0; s < steps_.size(); ++s) {
      if (kinds_.special[s]) continue;
      std::map<uint32_t, std::vector<float>> roles;
      for (const RankStep& r : steps_[s].ranks)
        if (r.rank != rank && r.peers > 1) roles[r.role].push_back(r.self);
      for (auto& [role, times] : roles) {
        const auto n = static_cast<float>(times.size());
        if (times.size() < 2) continue;
        std::sort(times.begin(), times.end());
        const float middle = (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
        for (const float ms : times)
          values.push_back(std::abs(ms - middle) * std::sqrt(n / (n - 1)) /
                           static_cast<float>(steps_[s].step_ms));
      }
    }
    return kMadToSigma * lower_median(values);
  }

  double sigma_for(uint32_t rank, double of_all) const {
    const auto at = sigma_without_.find(rank);
    return at == sigma_without_.end() ? of_all : at->second;
  }

  // The spread in one step: during rare work (a checkpoint) ranks differ more.
  double sigma_of(const StepResult& s) const {
    std::vector<float> values;
    for (const RankStep& r : s.ranks)
      if (r.peers > 1 && r.excess != 0) values.push_back(std::abs(r.excess) / static_cast<float>(s.step_ms));
    return std::max(sigma_, kMadToSigma * lower_median(values));
  }

  // Ranks of a host in a step, and those in excess.
  struct OnHost {
    uint32_t ranks = 0, beyond = 0;
    // An excess of one family comes from its batch; an excess of most ranks comes from the host.
    bool most() const { return 4 * beyond >= 3 * ranks; }
  };

  template <class Beyond>
  std::vector<OnHost> count_hosts(const StepResult& s, Beyond beyond) const {
    std::vector<OnHost> out(cluster_.hosts().size() + 1);
    for (const RankStep& r : s.ranks) {
      OnHost& host = out[host_or_last(r.rank)];
      ++host.ranks;
      host.beyond += beyond(r);
    }
    return out;
  }

  // False during an announced phase, because extra time is expected there.
  bool is_comparable(const StepResult& s, const RankStep& r) const {
    if (r.peers < 2 || s.step_ms <= 0) return false;
    const auto ns = static_cast<TimeNs>(s.step_ms * kNsPerMs);
    return !phases_ || !phases_->covers(cluster_.ranks()[r.rank].rank, s.last_ns - ns, s.last_ns);
  }

  static bool differs(float excess, float usual) { return excess > kDevicesDiffer * usual; }

  void find_ranks() {
    of_.assign(cluster_.ranks().size(), {});
    for (uint32_t s = 0; s < steps_.size(); ++s) {
      if (kinds_.special[s]) continue;
      const double of_all = sigma_of(steps_[s]);
      const auto beyond_role = [&](const RankStep& r) {
        const double x = r.excess / steps_[s].step_ms;
        return r.peers > 1 && x > kSigmas * sigma_for(r.rank, of_all) && x > kWorth &&
               differs(r.excess, r.self - r.excess);
      };
      const std::vector<OnHost> on_host = count_hosts(steps_[s], beyond_role);
      for (const RankStep& r : steps_[s].ranks) {
        if (!is_comparable(steps_[s], r)) continue;
        OfRank& of = of_[r.rank];
        const double y = r.closer / steps_[s].step_ms;
        const bool by_family = y > kSigmas * sigma_for(r.rank, family_sigma_) && y > kWorth &&
                               differs(r.closer, r.self - r.closer);
        const bool hit = by_family || (beyond_role(r) &&
                                       (2 * r.closer > r.excess || on_host[host_or_last(r.rank)].most()));
        const bool even = hit && r.even >= kEven && r.gaps >= kGaps;
        of.marks.push_back({s, hit, even});
        of.path.push_back(r.path);
        of.excess.push_back(by_family ? std::max(r.closer, r.excess) : r.excess);
        of.usual.push_back(r.self - of.excess.back());
        of.peers = std::max(of.peers, r.peers);
        of.hits += hit;
        of.even += even;
      }
    }
    by_host_.assign(cluster_.hosts().size() + 1, {});
    for (uint32_t i = 0; i < of_.size(); ++i)
      for (Sums* sums : {&all_, &by_host_[host_or_last(i)]}) {
        sums->observed += static_cast<double>(of_[i].marks.size());
        sums->hits += of_[i].hits;
        sums->even += of_[i].even;
      }
    bar_ = std::log(std::max(all_.observed, 1.0) / kAlpha);
    std::vector<bool> named(of_.size(), false);
    for (uint32_t i = 0; i < of_.size(); ++i) named[i] = of_[i].hits > 0 && add_lasting(i);
    for (const bool large : {false, true})
      for (const auto& [level, rank] : most_hit(named, large))
        named[rank] = named[rank] || add_recurring(rank, large ? 0.5 * level : 0);
  }

  // The kCandidates strongest candidates for intermittent slowness, by third largest excess or by number of
  // slow steps.
  std::vector<std::pair<double, uint32_t>> most_hit(const std::vector<bool>& named, bool large) const {
    constexpr size_t kCandidates = 8;
    std::vector<std::pair<double, uint32_t>> out;
    std::vector<double> shares;
    for (uint32_t i = 0; i < of_.size(); ++i) {
      if (named[i] || of_[i].hits < kHits) continue;
      shares.clear();
      for (size_t m = 0; m < of_[i].marks.size(); ++m)
        if (of_[i].marks[m].hit) shares.push_back(share_of(of_[i].marks[m].step, of_[i].excess[m]));
      std::nth_element(shares.begin(), shares.begin() + kHits - 1, shares.end(), std::greater<>());
      out.emplace_back(large ? shares[kHits - 1] : static_cast<double>(of_[i].hits), i);
    }
    std::sort(out.begin(), out.end(), std::greater<>());
    if (out.size() > kCandidates) out.resize(kCandidates);
    return out;
  }

  bool hit_at(const OfRank& of, size_t m, double level) const {
    return of.marks[m].hit && share_of(of.marks[m].step, of.excess[m]) >= level;
  }

  // By step: whether the rank's excess reached `level`, a share of the step. Special steps never count.
  std::vector<bool> hits_of(const OfRank& of, double level) const {
    std::vector<bool> hits(steps_.size(), false);
    for (size_t m = 0; m < of.marks.size() && of.hits > 0; ++m) hits[of.marks[m].step] = hit_at(of, m, level);
    return hits;
  }

  // Whether the hits in a run of a rank's steps exceed a passing event.
  bool lasts(uint32_t rank, const Run& run, uint32_t hits) const {
    const OfRank& of = of_[rank];
    double ms = 0;
    uint32_t behind = 0;
    for (size_t i = run.from; i <= run.to; ++i) {
      ms += steps_[of.marks[i].step].step_ms;
      behind += differs(of.excess[i], of.usual[i]);
    }
    // Competition for cores varies from second to second. If CPU work scatters as much as an actionable
    // slowdown, single slow steps prove nothing. Then the rank must lag its peers in nearly all steps of a
    // longer period.
    if (cluster_.ranks()[rank].device == kNone && sigma_for(rank, sigma_) > kWorth &&
        (hits < kLastingLive || ms < kLastingOnCoresMs ||
         behind < kBehindOnCores * static_cast<double>(run.to - run.from + 1)))
      return false;
    if (hits >= kLastingHits && ms >= kLastingMs) return true;
    return kLastingShare * hits >= of.marks.size() && (!live_ || hits >= kLastingLive);
  }

  // Whether there are kHits slow steps of similar size, or 2 * kHits of any size. Two slow steps and one that
  // scatters count as one event.
  bool are_several(const OfRank& of, const Run& run) const {
    std::vector<double> shares;
    for (size_t i = run.from; i <= run.to; ++i)
      if (of.marks[i].hit) shares.push_back(share_of(of.marks[i].step, of.excess[i]));
    if (shares.size() < kHits || shares.size() >= 2 * kHits) return shares.size() >= kHits;
    std::ranges::sort(shares, std::greater<>());
    return shares[kHits - 1] * kOutlies * kOutlies >= shares[kHits - 2];
  }

  // Returns false if the rank was not slow for long enough.
  bool add_lasting(uint32_t rank) {
    const OfRank& of = of_[rank];
    // Rate of hits for healthy ranks. Excludes the rank's host, which may share its fault.
    Sums mine = cluster_.hosts().size() > 1 ? by_host_[host_or_last(rank)] : Sums{};
    if (cluster_.hosts().size() < 2)
      mine = {static_cast<double>(of.marks.size()), static_cast<double>(of.hits),
              static_cast<double>(of.even)};
    const double hits_of_others = 1 + all_.hits - mine.hits;
    const double floor = std::min(hits_of_others / (20 + all_.observed - mine.observed), 0.5);
    // A healthy rank with equal pieces of work appears even by chance in one of 50 hits.
    const double even_floor = std::min((all_.even - mine.even + 0.02) / hits_of_others, kShows);
    const Run run = strongest(of.marks, floor, even_floor);
    if (run.best < bar_) return false;
    uint32_t hits = 0;
    for (size_t i = run.from; i <= run.to; ++i) hits += of.marks[i].hit;
    if (!are_several(of, run) || !lasts(rank, run, hits)) return false;
    if (is_habit(rank, distance_of(of), 0)) return false;
    Culprit c;
    c.evidence = run.best;
    c.bar = bar_;
    c.lasting = true;
    add_rank(rank, run, 0, std::move(c));
    return true;
  }

  // Recurring events of one rank, at least twice as many as of any other. `level`: minimum size of a hit.
  bool add_recurring(uint32_t rank, double level) {
    const OfRank& of = of_[rank];
    std::vector<bool> hits = hits_of(of, level);
    if (!of.marks.empty()) hits.resize(of.marks.back().step + 1);  // the last step may be unfinished
    const size_t events = count_events(hits);
    if (std::count(hits.begin(), hits.end(), true) < kHits) return false;
    const bool several = cluster_.hosts().size() > 1;
    std::vector<uint32_t> at_others(hits.size(), 0);
    size_t ranks = 0, most = 0;
    double of_others = 1;
    for (uint32_t i = 0; i < of_.size(); ++i) {
      if (i == rank || of_[i].marks.empty() || (several && host_or_last(i) == host_or_last(rank))) continue;
      ++ranks;
      if (of_[i].hits == 0) continue;
      const std::vector<bool> its = hits_of(of_[i], level);
      for (size_t s = 0; s < hits.size(); ++s) at_others[s] += its[s];
      const size_t n = count_events(its);
      of_others += static_cast<double>(n);
      most = std::max(most, n);
    }
    if (ranks == 0) return false;
    const Rhythm rhythm = find_rhythm(hits, at_others, ranks);
    const bool often = events >= kHits && static_cast<double>(events) >= kOutlies * static_cast<double>(most);
    const double by_events = often ? recurrence_evidence(events, of_others / static_cast<double>(ranks)) : 0;
    Culprit c;
    c.evidence = std::max(rhythm.evidence, by_events) - std::log(4.0);  // correction for four tried variants
    c.bar = std::log(static_cast<double>(of_.size()) / kAlpha);
    c.likely = c.evidence < c.bar;
    if (c.evidence < (c.likely ? bar_of_host(rank) : c.bar) || is_habit(rank, rhythm.period, level))
      return false;
    c.period = rhythm.evidence > 0 ? rhythm.period : 0;
    c.events = c.period > 0 ? rhythm.hits : events;
    Run run{c.evidence, 0, of.marks.size() - 1};
    while (!of.marks[run.from].hit) ++run.from;
    while (!of.marks[run.to].hit) --run.to;
    const bool sure = !c.likely;
    add_rank(rank, run, level, std::move(c));
    return sure;
  }

  // Bar for chance among the ranks of one host. It applies if the machine's reports identify the host, which
  // excludes other hosts.
  double bar_of_host(uint32_t rank) const {
    const uint32_t host = cluster_.ranks()[rank].host;
    if (host == kNone || cluster_.hosts().size() < 2) return bar_;
    const auto same = [host](const RankInfo& r) { return r.host == host; };
    return std::log(static_cast<double>(std::ranges::count_if(cluster_.ranks(), same)) / kAlphaOfHost);
  }

  // Greatest common divisor of the distances between its slow steps.
  size_t distance_of(const OfRank& of) const {
    int64_t out = 0, last = -1;
    for (const Mark& m : of.marks) {
      if (!m.hit) continue;
      if (last >= 0) out = std::gcd(out, steps_[m.step].number - last);
      last = steps_[m.step].number;
    }
    return static_cast<size_t>(out);
  }

  // Whether the slowness is routine work of rank 0 (logging, a checkpoint every n steps): the slow steps are
  // multiples of n.
  bool is_habit(uint32_t rank, size_t every, double level) const {
    const OfRank& of = of_[rank];
    const auto period = static_cast<int64_t>(every);
    if (cluster_.ranks()[rank].rank != 0 || period < kHabit) return false;
    for (size_t m = 0; m < of.marks.size(); ++m) {
      const int64_t phase = steps_[of.marks[m].step].number % period;
      if (hit_at(of, m, level) && phase > 1 && phase < period - 1) return false;
    }
    return true;
  }

  void add_rank(uint32_t rank, const Run& run, double level, Culprit c) {
    const OfRank& of = of_[rank];
    c.kind = SlowPart::kGpu;
    c.ranks = {rank};
    if (const uint32_t host = cluster_.ranks()[rank].host; host != kNone) c.hosts = {host};
    c.peers = of.peers;
    uint32_t even = 0;
    double excess = 0, usual = 0;
    for (size_t i = run.from; i <= run.to; ++i) {
      if (!hit_at(of, i, level)) continue;
      c.steps.push_back(of.marks[i].step);
      c.costs.push_back(std::max(0.f, of.path[i]));
      even += of.marks[i].even;
      excess += of.excess[i];
      usual += of.usual[i];
    }
    c.ratio = usual > 0 ? 1 + excess / usual : 1;
    c.excess_ms = excess / static_cast<double>(c.steps.size());
    c.stalls = !c.lasting && 2 * even < c.steps.size();
    if (!is_outlier(rank, run, c)) return;
    if (!c.likely)
      out_.culprits.push_back(std::move(c));
    else if (c.stalls)
      keep_likely(std::move(c));
  }

  // Adds at most one entry per rank.
  void keep_likely(Culprit c) {
    const auto known = std::ranges::find(out_.likely, c.ranks, &Culprit::ranks);
    if (known == out_.likely.end())
      out_.likely.push_back(std::move(c));
    else if (c.evidence > known->evidence)
      *known = std::move(c);
  }

  double share_of(uint32_t step, float ms) const { return ms / steps_[step].step_ms; }

  // Mean of a rank's `k` largest excesses in the steps [first, last], as shares of the step.
  void find_means(uint32_t first, uint32_t last, size_t k) {
    if (!means_.empty() && means_of_ == std::tuple(first, last, k)) return;
    means_of_ = {first, last, k};
    means_.assign(of_.size(), 0);
    std::vector<double> values;
    for (size_t i = 0; i < of_.size(); ++i) {
      values.clear();
      const std::vector<Mark>& marks = of_[i].marks;  // a rank may miss steps
      const auto from = std::lower_bound(marks.begin(), marks.end(), first,
                                         [](const Mark& m, uint32_t step) { return m.step < step; });
      for (auto m = static_cast<size_t>(from - marks.begin()); m < marks.size() && marks[m].step <= last; ++m)
        values.push_back(share_of(marks[m].step, of_[i].excess[m]));
      const size_t n = std::min(k, values.size());
      std::partial_sort(values.begin(), values.begin() + static_cast<ptrdiff_t>(n), values.end(),
                        std::greater<>());
      for (size_t m = 0; m < n; ++m) means_[i] += values[m] / static_cast<double>(n);
    }
    values.clear();
    for (size_t i = 0; i < of_.size(); ++i)
      if (!of_[i].marks.empty()) values.push_back(means_[i]);
    const auto [middle, sigma] = spread_around(std::move(values));
    middle_ = middle, spread_ = sigma;
  }

  // Whether the rank's excess exceeds the spread between ranks, each taken in its own slowest steps. Some
  // ranks regularly have more work.
  bool is_outlier(uint32_t rank, const Run& run, Culprit& c) {
    find_means(of_[rank].marks[run.from].step, of_[rank].marks[run.to].step, c.steps.size());
    // The expected maximum of n normal values.
    const double far = std::sqrt(2 * std::log(static_cast<double>(of_.size()) / kAlpha));
    const double mean = means_[rank];
    if (mean < middle_ + far * spread_) return false;
    const uint32_t host = cluster_.ranks()[rank].host;
    double next = 0;
    for (uint32_t i = 0; i < means_.size(); ++i)
      if (i != rank && (host == kNone || cluster_.ranks()[i].host != host)) next = std::max(next, means_[i]);
    c.share = mean;
    c.confidence = 1 - 0.5 * std::clamp(next / mean, 0.0, 1.0);
    return true;
  }

  void find_network() {
    using Key = std::tuple<NetKind, uint32_t, uint32_t>;
    std::map<Key, std::vector<std::pair<uint32_t, const NetEffect*>>> seen;
    for (uint32_t s = 0; s < steps_.size(); ++s)
      for (const NetEffect& e : steps_[s].network) seen[{e.kind, e.a, e.b}].emplace_back(s, &e);
    if (seen.empty()) return;
    const auto n = static_cast<double>(steps_.size());
    // Rate at which chance names parts, estimated from the three quarters of parts with the fewest steps.
    double named = 1, of = 20;
    const auto parts = static_cast<double>(cluster_.ranks().size());
    of += parts * n;
    std::vector<size_t> counts;
    for (const auto& [key, list] : seen) counts.push_back(list.size());
    std::sort(counts.begin(), counts.end());
    for (size_t i = 0; i < 3 * counts.size() / 4; ++i) named += static_cast<double>(counts[i]);
    const double floor = std::min(named / of, 0.5);
    for (const auto& [key, list] : seen) {
      const bool of_host = std::get<0>(key) != NetKind::kNic && std::get<0>(key) != NetKind::kLink;
      const double alike = of_host ? static_cast<double>(cluster_.hosts().size()) : parts;
      const double bar = std::log(alike * n / kAlpha);
      std::vector<Mark> marks;
      for (uint32_t s = 0; s < steps_.size(); ++s) marks.push_back({s, false, false});
      for (const auto& [s, effect] : list) marks[s].hit = true;
      const Run run = strongest(marks, floor, kShows);
      const auto in_run = [&](const auto& at) { return at.first >= run.from && at.first <= run.to; };
      if (run.best < bar || std::ranges::count_if(list, in_run) < kHits) continue;
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
    std::vector<double> sure;
    for (const auto& [s, effect] : list) {
      if (s < run.from || s > run.to) continue;
      c.steps.push_back(s);
      c.costs.push_back(effect->cost);
      ratios.push_back(effect->ratio);
      sure.push_back(effect->sure);
    }
    c.ratio = lower_median(ratios);
    constexpr SlowPart kKinds[] = {SlowPart::kNic, SlowPart::kNvlink, SlowPart::kLink, SlowPart::kHost};
    c.kind = kKinds[static_cast<size_t>(first.kind)];
    if (first.kind == NetKind::kNic) {
      c.ranks = {first.a};
      if (const uint32_t host = cluster_.ranks()[first.a].host; host != kNone) c.hosts = {host};
    } else {
      c.hosts = {first.a};
      if (first.kind == NetKind::kLink) c.hosts.push_back(first.b);
      add_ranks_of_hosts(c);
    }
    // Parts that explain the slowdown equally well do so in every step, so the median holds.
    c.confidence = lower_median(sure);
    c.ambiguous = c.confidence < kNamed;
    out_.culprits.push_back(std::move(c));
  }

  void add_ranks_of_hosts(Culprit& c) const {
    for (uint32_t r = 0; r < cluster_.ranks().size(); ++r)
      if (std::find(c.hosts.begin(), c.hosts.end(), cluster_.ranks()[r].host) != c.hosts.end())
        c.ranks.push_back(r);
  }

  // Longest gap of a step, and the next longest on another host. If a record is lost, a wait for the paused
  // rank also appears as a gap. This gap costs nothing, so the largest such gap per step is skipped; a second
  // one counts.
  struct Pause {
    const RankStep* rank = nullptr;
    float next = 0;
    bool sparse = false;
  };

  Pause pause_of(const StepResult& s) const {
    Pause out;
    std::vector<float> all;
    for (const RankStep& r : s.ranks) {
      if (!is_comparable(s, r)) continue;
      all.push_back(r.largest);
      if (!out.rank || r.largest > out.rank->largest) out.rank = &r;
    }
    if (!out.rank) return out;
    const uint32_t host = cluster_.ranks()[out.rank->rank].host;
    const RankStep* other = nullptr;
    for (const RankStep& r : s.ranks) {
      if (r.peers < 2 || &r == out.rank || (host != kNone && cluster_.ranks()[r.rank].host == host)) continue;
      const bool first = !other || r.largest > other->largest;
      const RankStep* second = first ? other : &r;
      if (second) out.next = std::max(out.next, second->largest);
      if (first) other = &r;
    }
    if (other && other->path > 0) out.next = other->largest;
    out.sparse = out.rank->largest > kPauseBeyond * quantile(all, 0.9);
    return out;
  }

  bool is_named(uint32_t step) const {
    return std::ranges::any_of(out_.culprits, [step](const Culprit& c) {
      return std::ranges::find(c.steps, step) != c.steps.end();
    });
  }

  // Finds a rank that paused once, longer than any other rank in any step. If several ranks pause, pauses are
  // normal for the program, and no rank is at fault.
  void find_pause() {
    if (steps_.size() < 4 || steps_.size() > kPauseSteps) return;
    float most = 0, next = 0;
    size_t at = 0;
    std::vector<Pause> pauses;
    for (const StepResult& s : steps_) pauses.push_back(pause_of(s));
    for (size_t i = 0; i < pauses.size(); ++i)
      if (const Pause& p = pauses[i]; p.sparse && p.rank->largest > most) most = p.rank->largest, at = i;
    if (most < kCollectionMs) return;
    const RankStep& r = *pauses[at].rank;
    for (size_t i = 0; i < pauses.size(); ++i)
      if (const Pause& p = pauses[i]; i == at)
        next = std::max(next, p.next);
      else if (p.sparse)
        next = std::max(next, p.rank->rank == r.rank ? p.next : p.rank->largest);
    // Lost records may divert the critical path; the step's length still shows the pause.
    const double longer = steps_[at].step_ms - kinds_.usual_ms;
    const double cost = std::max(double{r.path}, std::min(longer, double{r.largest}));
    if (most < kOutlies * next || cost < kPauseWorth * steps_[at].step_ms) return;
    // possibly the same event at another rank, without a visible cause
    for (uint32_t s = 0; s < steps_.size(); ++s)
      if (s != at && kinds_.is_alike(steps_, s, longer) && !is_named(s)) return;
    if (2 * r.closer < r.largest) return;  // its family was equally late, so the batch is the cause
    // Rank 0 saves and logs for all ranks, so its single pause is no evidence.
    if (cluster_.ranks()[r.rank].rank == 0) return;
    for (const Culprit& c : out_.culprits)
      if (std::find(c.ranks.begin(), c.ranks.end(), r.rank) != c.ranks.end()) return;
    Culprit c;
    c.kind = SlowPart::kHost;
    c.pause = true;
    c.ranks = {r.rank};
    if (const uint32_t host = cluster_.ranks()[r.rank].host; host != kNone) c.hosts = {host};
    c.peers = r.peers;
    c.steps = {static_cast<uint32_t>(at)};
    c.costs = {cost};
    c.excess_ms = r.largest;
    c.confidence = kPauseConfidence;
    out_.culprits.push_back(std::move(c));
  }

  // Whether the culprits share most slow steps of the culprit with fewer.
  static bool at_the_same_time(const Culprit& a, const Culprit& b) {
    std::vector<uint32_t> both;
    std::set_intersection(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                          std::back_inserter(both));
    return 2 * both.size() > std::min(a.steps.size(), b.steps.size());
  }

  // Merges hosts with simultaneously slow networks: they share a switch.
  void merge_switch() {
    const auto is_host = [](const Culprit& c) {
      return c.kind == SlowPart::kHost && c.peers == 0 && !c.ambiguous;
    };
    std::set<size_t> absorbed;
    for (size_t i = 0; i < out_.culprits.size(); ++i) {
      const Culprit& first = out_.culprits[i];
      if (!is_host(first) || absorbed.contains(i)) continue;
      std::vector<size_t> hosts{i};
      for (size_t j = i + 1; j < out_.culprits.size(); ++j)
        if (is_host(out_.culprits[j]) && !absorbed.contains(j) && at_the_same_time(first, out_.culprits[j]))
          hosts.push_back(j);
      if (hosts.size() < 2) continue;
      std::ranges::stable_sort(hosts, std::greater<>(), [&](size_t k) {
        return std::accumulate(out_.culprits[k].costs.begin(), out_.culprits[k].costs.end(), 0.0);
      });
      Culprit merged = out_.culprits[hosts[0]];
      std::map<uint32_t, double> costs;
      for (const size_t k : hosts) {
        const Culprit& other = out_.culprits[k];
        for (size_t s = 0; s < other.steps.size(); ++s) costs[other.steps[s]] += other.costs[s];
        if (k != i) absorbed.insert(k);
        if (k == hosts[0]) continue;
        merged.hosts.push_back(other.hosts[0]);
        merged.ranks.insert(merged.ranks.end(), other.ranks.begin(), other.ranks.end());
        merged.evidence = std::max(merged.evidence, other.evidence);
      }
      merged.kind = SlowPart::kSwitch;
      set_costs(merged, costs);
      out_.culprits[i] = std::move(merged);
    }
    erase(absorbed);
  }

  void erase(const std::set<size_t>& indices) {
    for (auto i = indices.rbegin(); i != indices.rend(); ++i)
      out_.culprits.erase(out_.culprits.begin() + static_cast<ptrdiff_t>(*i));
  }

  static void set_costs(Culprit& c, const std::map<uint32_t, double>& costs) {
    c.steps.clear();
    c.costs.clear();
    for (const auto& [step, cost] : costs) {
      c.steps.push_back(step);
      c.costs.push_back(cost);
    }
  }

  // Merges ranks into their host if the host has several, and most are slow.
  void merge_hosts() {
    std::map<uint32_t, std::vector<size_t>> slow;
    std::map<uint32_t, uint32_t> ranks;
    for (uint32_t r = 0; r < of_.size(); ++r)
      if (!of_[r].marks.empty() && cluster_.ranks()[r].host != kNone) ++ranks[cluster_.ranks()[r].host];
    for (size_t i = 0; i < out_.culprits.size(); ++i)
      if (out_.culprits[i].kind == SlowPart::kGpu && !out_.culprits[i].hosts.empty())
        slow[out_.culprits[i].hosts[0]].push_back(i);
    std::set<size_t> absorbed;
    for (auto& [host, list] : slow) {
      // A slow device delays its neighbours too, but less: drop ranks with a smaller share.
      double most = 0;
      for (const size_t i : list) most = std::max(most, out_.culprits[i].share);
      std::erase_if(list, [&](size_t i) { return out_.culprits[i].share < kAlike * most; });
      if (list.size() < 2 || 4 * list.size() < 3 * ranks[host]) continue;
      Culprit& c = out_.culprits[list[0]];
      // At most half of a role can be slower than usual at once. More slow ranks means that they were slow at
      // different times, and no other host serves as a comparison. So their batches differ.
      if (2 * list.size() > c.peers) {
        absorbed.insert(list.begin(), list.end());
        continue;
      }
      c.kind = SlowPart::kHost;
      std::map<uint32_t, double> costs;
      for (const size_t i : list) {
        const Culprit& other = out_.culprits[i];
        if (i != list[0]) c.ranks.push_back(other.ranks[0]);
        c.evidence = std::max(c.evidence, other.evidence);
        for (size_t k = 0; k < other.steps.size(); ++k) costs[other.steps[k]] += other.costs[k];
        if (i != list[0]) absorbed.insert(i);
      }
      set_costs(c, costs);
    }
    erase(absorbed);
  }

  // Keeps the steps in which a culprit has a cost. Drops culprits without any cost, unless a costlier culprit
  // hides theirs.
  void choose_steps() {
    std::vector<Culprit> retained;
    double most = 0;
    for (Culprit& c : out_.culprits) most = std::max(most, keep_costly(c));
    for (Culprit& c : out_.culprits) {
      if (c.hidden && (c.excess_ms < 0.5 * most || most <= 0)) continue;
      if (!c.hidden && !costs_enough(c)) {
        if (!c.ambiguous && !c.pause && out_.cheap.size() < kCheap) out_.cheap.push_back(std::move(c));
        continue;
      }
      // Its other slow steps cost nothing, so its cost is one event.
      if (c.lasting && !c.hidden && c.steps.size() < kHits) continue;
      c.stalls = c.stalls && c.ranks.size() == 1;
      if (c.stalls) c.kind = SlowPart::kHost;
      // A rank close behind, or little evidence in total, lowers the confidence.
      c.confidence *= c.pause ? 1 : sure_of(c.evidence, c.bar, c.events > 0 ? c.events : c.seen);
      retained.push_back(std::move(c));
    }
    out_.culprits = std::move(retained);
    choose_likely();
  }

  // Keeps the steps in which the culprit has a cost. Returns the highest cost of a step.
  double keep_costly(Culprit& c) const {
    std::vector<uint32_t> steps;
    std::vector<double> costs;
    double sum = 0;
    c.seen = c.steps.size();
    for (size_t i = 0; i < c.steps.size(); ++i) {
      if (c.costs[i] < kCostWorth * steps_[c.steps[i]].step_ms) continue;
      steps.push_back(c.steps[i]);
      costs.push_back(c.costs[i]);
      sum += c.costs[i];
    }
    c.hidden = steps.empty();
    if (c.hidden) return 0;
    c.steps = std::move(steps);
    c.costs = std::move(costs);
    c.cost_ms = sum / static_cast<double>(c.steps.size());
    return *std::ranges::max_element(c.costs);
  }

  // Keeps the likely ranks that have a cost and that no culprit explains.
  void choose_likely() {
    std::erase_if(out_.likely, [&](Culprit& c) {
      keep_costly(c);
      const auto is_same = [&](const Culprit& other) {
        return std::ranges::find(other.ranks, c.ranks[0]) != other.ranks.end();
      };
      return c.hidden || std::ranges::any_of(out_.culprits, is_same);
    });
    for (Culprit& c : out_.likely) {
      c.kind = SlowPart::kHost;
      c.confidence *= sure_of(c.evidence, c.bar, c.events > 0 ? c.events : c.seen);
    }
  }

  // Whether the culprit's removal shortens the steps enough. Always true for several culprits or a switch's
  // hosts, which hide each other's costs, and for estimated costs from summaries.
  bool costs_enough(const Culprit& c) const {
    if (out_.culprits.size() > 1 || c.kind == SlowPart::kSwitch) return true;
    double cost = 0, whole = 0;
    for (size_t i = 0; i < c.steps.size(); ++i) {
      if (steps_[c.steps[i]].basis == Basis::kSums) return true;
      cost += c.costs[i];
      whole += steps_[c.steps[i]].step_ms;
    }
    return cost >= std::max(kAccuseWorth, scatter_without(c)) * (whole - cost);
  }

  // Scatter of the step times without the culprit's cost, relative to the median step.
  double scatter_without(const Culprit& c) const {
    std::map<uint32_t, double> costs;
    for (size_t i = 0; i < c.steps.size(); ++i) costs[c.steps[i]] = c.costs[i];
    std::vector<double> times;
    for (uint32_t s = 0; s < steps_.size(); ++s)
      if (!kinds_.special[s]) times.push_back(steps_[s].step_ms - (costs.contains(s) ? costs[s] : 0));
    if (times.size() < 4) return 0;
    const auto [middle, sigma] = spread_around(std::move(times));
    return middle > 0 ? sigma / middle : 0;
  }

  // Steps much longer than usual and without a culprit, and what explains them.
  void find_odd_steps() {
    std::vector<bool> explained(steps_.size(), false);
    for (const Culprit& c : out_.culprits)
      for (size_t i = 0; i < c.steps.size() && !c.hidden; ++i) explained[c.steps[i]] = true;
    OddSteps odd = explain_odd_steps({cluster_, steps_, kinds_, phases_}, explained);
    out_.odd = std::move(odd.steps);
    out_.listed = std::move(odd.suspects);
  }

  const Cluster& cluster_;
  const std::deque<StepResult>& steps_;
  const bool live_;
  const Announced* phases_;
  std::vector<OfRank> of_;
  // By rank: mean of the largest excesses. `means_of_`: first step, last step, and number of excesses.
  std::vector<double> means_;
  std::tuple<uint32_t, uint32_t, size_t> means_of_;
  double middle_ = 0, spread_ = 0;
  const StepKinds kinds_;
  Sums all_;
  std::vector<Sums> by_host_;  // the last entry: ranks on unknown hosts
  double sigma_ = 0, family_sigma_ = 0, bar_ = 0;
  std::map<uint32_t, double> sigma_without_;  // by rank, for small jobs
  Judgement out_;
};

}  // namespace

Judgement judge(const Cluster& cluster, const std::deque<StepResult>& steps, bool live,
                const Announced* phases) {
  return Judge(cluster, steps, live, phases).run();
}

}  // namespace culprit::comm
