#include "core/replay/next_round.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace culprit::replay {
namespace {

using Kind = Hypothesis::Kind;

constexpr uint32_t kNoGroup = UINT32_MAX;
constexpr size_t kSamples = 192;     // of the results of a round
constexpr size_t kRandomRounds = 6;  // divisions of each random kind
constexpr size_t kFewGroups = 16;    // each is tried
constexpr double kAsMuch = 0.95;
constexpr double kWorthRunning = 0.02;  // of the best group's information

// SplitMix64: the same proposal for the same results.
class Sequence {
 public:
  explicit Sequence(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  double real() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  void shuffle(std::vector<uint32_t>& values, size_t begin, size_t end) {
    for (size_t i = end; i > begin + 1; --i)
      std::swap(values[i - 1], values[begin + ((next() >> 32) * (i - begin) >> 32)]);
  }

 private:
  uint64_t state_;
};

double entropy(double p) { return p <= 0 || p >= 1 ? 0 : -(p * std::log2(p) + (1 - p) * std::log2(1 - p)); }

// Results of a round of groups under one hypothesis after another.
class Division {
 public:
  Division(const std::vector<HostSet>& groups, const Plan& plan, const Odds& odds)
      : groups_(groups.size()), of_(plan.hosts.size(), kNoGroup) {
    for (uint32_t g = 0; g < groups.size(); ++g)
      for (const uint32_t host : groups[g]) of_[host] = g;
    for (unsigned k = 0; k < 3; ++k) fails_[k] = failing(odds, k);
  }

  double fails(const Hypothesis& h, uint32_t group) const {
    if (h.kind == Kind::kJob) return fails_[1];
    return fails_[(h.kind >= Kind::kOne && of_[h.a] == group) + (h.kind == Kind::kTwo && of_[h.b] == group)];
  }

  // Likelihood of the results by that with no host at fault. `failures`: number of true results.
  double ratio(const Hypothesis& h, const std::vector<bool>& failed, size_t failures) const {
    if (h.kind == Kind::kNoHost) return 1;
    if (h.kind == Kind::kJob)
      return std::pow(fails_[1] / fails_[0], static_cast<double>(failures)) *
             std::pow((1 - fails_[1]) / (1 - fails_[0]), static_cast<double>(groups_ - failures));
    const uint32_t a = of_[h.a], b = h.kind == Kind::kTwo ? of_[h.b] : kNoGroup;
    if (a == b) return a == kNoGroup ? 1 : of_one(2, failed[a]);
    return (a == kNoGroup ? 1 : of_one(1, failed[a])) * (b == kNoGroup ? 1 : of_one(1, failed[b]));
  }

  // Of one group alone.
  double information_of(uint32_t group, const std::vector<Hypothesis>& top, double all) const {
    double fails_in_all = 0, noise = 0;
    for (const Hypothesis& h : top) {
      const double p = fails(h, group);
      fails_in_all += h.probability / all * p;
      noise += h.probability / all * entropy(p);
    }
    return std::max(0.0, entropy(fails_in_all) - noise);
  }

 private:
  double of_one(unsigned faults, bool failed) const {
    return failed ? fails_[faults] / fails_[0] : (1 - fails_[faults]) / (1 - fails_[0]);
  }

  size_t groups_;
  std::vector<uint32_t> of_;  // by host
  double fails_[3];
};

double total(const std::vector<Hypothesis>& top) {
  return std::accumulate(top.begin(), top.end(), 0.0,
                         [](double sum, const Hypothesis& h) { return sum + h.probability; });
}

// The hosts in the order given, as many full groups as there are.
std::vector<HostSet> grouped(const std::vector<uint32_t>& order, uint32_t size, bool dealt) {
  const size_t count = order.size() / size;
  std::vector<HostSet> out(count);
  for (size_t i = 0; i < count * size; ++i) out[dealt ? i % count : i / size].push_back(order[i]);
  for (HostSet& group : out) std::ranges::sort(group);
  return out;
}

std::vector<std::vector<HostSet>> divisions(const Plan& plan, const Summary& summary) {
  std::vector<std::vector<HostSet>> out{groups_of(plan, 1), groups_of(plan, 2)};
  std::vector<uint32_t> ranked(plan.hosts.size());
  std::iota(ranked.begin(), ranked.end(), 0u);
  std::ranges::stable_sort(ranked,
                           [&](uint32_t a, uint32_t b) { return summary.of_host[a] > summary.of_host[b]; });
  out.push_back(grouped(ranked, plan.size, true));
  const size_t count = ranked.size() / plan.size;
  Sequence random(ranked.size());
  for (size_t i = 0; i < kRandomRounds; ++i) {
    std::vector<uint32_t> order = ranked;
    for (size_t at = 0; at < order.size(); at += count)
      random.shuffle(order, at, std::min(at + count, order.size()));
    out.push_back(grouped(order, plan.size, true));
    random.shuffle(order, 0, order.size());
    out.push_back(grouped(order, plan.size, false));
  }
  return out;
}

// Runs cost hosts' time: without those that say nothing, then without the least while the others say as much.
void leave_out(Round& round, const Plan& plan, const Summary& summary, const Odds& odds) {
  const Division division(round.groups, plan, odds);
  const double all = total(summary.top);
  std::vector<std::pair<double, HostSet>> ranked;
  for (uint32_t g = 0; g < round.groups.size(); ++g)
    ranked.emplace_back(division.information_of(g, summary.top, all), std::move(round.groups[g]));
  std::ranges::stable_sort(ranked, [](const auto& a, const auto& b) { return a.first > b.first; });
  round.groups.clear();
  for (auto& [bits, group] : ranked)
    if (bits >= kWorthRunning * ranked.front().first) round.groups.push_back(std::move(group));
  if (round.groups.size() > kFewGroups) return;
  while (round.groups.size() > 1) {
    HostSet last = std::move(round.groups.back());
    round.groups.pop_back();
    if (information(round.groups, plan, summary, odds) >= kAsMuch * round.bits) continue;
    round.groups.push_back(std::move(last));
    return;
  }
}

}  // namespace

double information(const std::vector<HostSet>& groups, const Plan& plan, const Summary& summary,
                   const Odds& odds) {
  const std::vector<Hypothesis>& top = summary.top;
  const double all = total(top);
  if (top.empty() || groups.empty()) return 0;
  const Division division(groups, plan, odds);
  Sequence random(1);
  std::vector<bool> failed(groups.size());
  double bits = 0, below = top.front().probability / all;
  size_t at = 0;
  for (size_t s = 0; s < kSamples; ++s) {
    // Samples of the hypotheses in equal steps of their probability.
    const double share = (static_cast<double>(s) + 0.5) / kSamples;
    while (below < share && at + 1 < top.size()) below += top[++at].probability / all;
    size_t failures = 0;
    for (uint32_t g = 0; g < groups.size(); ++g)
      failures += failed[g] = random.real() < division.fails(top[at], g);
    double mixture = 0;
    for (const Hypothesis& h : top) mixture += h.probability / all * division.ratio(h, failed, failures);
    bits += std::log2(division.ratio(top[at], failed, failures) / mixture) / kSamples;
  }
  return std::max(0.0, bits);
}

Round next_round(const Plan& plan, const Summary& summary, const Odds& odds) {
  Round out;
  for (std::vector<HostSet>& groups : divisions(plan, summary)) {
    const double bits = information(groups, plan, summary, odds);
    if (out.groups.empty() || bits > out.bits * 1.01) out = {std::move(groups), bits};
  }
  leave_out(out, plan, summary, odds);
  return out;
}

}  // namespace culprit::replay
