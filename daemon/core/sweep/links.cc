#include "core/sweep/links.h"

#include <algorithm>
#include <cmath>

namespace culprit::sweep {
namespace {

constexpr size_t kEnough = 2;  // pairs: with one there is nothing to compare with

// Between two values the better one: `more` is better, or less.
std::optional<double> quantile_of(std::vector<double> values, double quantile, bool more) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const double at = quantile * static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(more ? std::ceil(at) : at)];
}

// One bad host has 2 / members of all links: the middle of the others is their median where there are
// many, and near the best of three.
Usual middles(uint32_t members, std::span<const PairRun> runs, bool quiet) {
  std::vector<double> rates, undisturbed, latencies;
  for (const PairRun& run : runs) {
    if (quiet && !run.follow_up) continue;
    for (const Flow* flow : {&run.to_b, &run.to_a}) {
      if (flow->measured) rates.push_back(flow->rate);
      if (flow->measured && !flow->disturbed) undisturbed.push_back(flow->rate);
    }
    if (run.latency_ns != kNoTime) latencies.push_back(static_cast<double>(run.latency_ns));
  }
  const double beyond = 1.0 / std::max(members, 3u);
  Usual out;
  if (2 * undisturbed.size() >= rates.size()) rates = std::move(undisturbed);
  if (rates.size() >= 2 * kEnough) out.rate = quantile_of(std::move(rates), 0.5 + beyond, true);
  if (latencies.size() >= kEnough) out.latency_ns = quantile_of(std::move(latencies), 0.5 - beyond, false);
  return out;
}

void take_best(std::optional<double>& best, double value, bool more) {
  if (!best || (more ? value > *best : value < *best)) best = value;
}

void join(const PairRun& run, Link& link) {
  link.runs.push_back(&run);
  link.wrong += run.to_b.wrong + run.to_a.wrong;
  link.bytes += run.to_b.bytes + run.to_a.bytes;
  link.disturbed |= run.to_b.disturbed || run.to_a.disturbed;
  if (run.latency_ns != kNoTime) take_best(link.latency_ns, static_cast<double>(run.latency_ns), false);
}

}  // namespace

std::map<Pair, Link> links_of(std::span<const PairRun> runs) {
  std::map<Pair, Link> out;
  for (const PairRun& run : runs) join(run, out[{run.a, run.b}]);
  for (auto& [pair, link] : out) {
    std::optional<double> to_b, to_a;
    for (const PairRun* run : link.runs) {
      if (run->to_b.measured) take_best(to_b, run->to_b.rate, true);
      if (run->to_a.measured) take_best(to_a, run->to_a.rate, true);
    }
    if (to_a && to_b) link.rate = std::min(*to_a, *to_b);
  }
  return out;
}

Usual usual_of_all(uint32_t members, std::span<const PairRun> runs) { return middles(members, runs, false); }

Usual usual_of(uint32_t members, std::span<const PairRun> runs) {
  Usual out = middles(members, runs, false);
  const Usual quiet = middles(members, runs, true);
  if (quiet.rate) out.rate = quiet.rate;
  if (quiet.latency_ns) out.latency_ns = quiet.latency_ns;
  return out;
}

bool is_slow(const Flow& flow, const Usual& usual, double bar) {
  return usual.rate && flow.measured && flow.most < bar * *usual.rate;
}

bool is_late(const PairRun& run, const Usual& usual, double bar) {
  if (!usual.latency_ns || run.latency_ns == kNoTime) return false;
  const auto latency = static_cast<double>(run.latency_ns);
  return latency > bar * *usual.latency_ns && latency > *usual.latency_ns + kLatencyLeast;
}

bool is_odd(const PairRun& run, const Usual& usual) {
  if (run.answer == PairAnswer::kNoReport) return false;
  return run.answer == PairAnswer::kNotReached || run.to_b.wrong > 0 || run.to_a.wrong > 0 ||
         is_slow(run.to_b, usual, kSuspectRate) || is_slow(run.to_a, usual, kSuspectRate) ||
         is_late(run, usual, kSuspectLatency);
}

}  // namespace culprit::sweep
