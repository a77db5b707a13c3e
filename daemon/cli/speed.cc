#include "cli/speed.h"

#include <algorithm>
#include <cmath>

namespace culprit::cli {
namespace {

constexpr size_t kBlocks = 12, kBlocksMin = 5, kIntervalsMin = 20;
constexpr double kLeast = 0.03;   // smaller differences are irrelevant
constexpr double kEffect = 0.9;   // share of pairs of blocks that must agree
constexpr double kSpreads = 2.0;  // multiple of the noise

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<double> medians(std::span<const double> values) {
  std::vector<double> out;
  const size_t blocks = std::min(kBlocks, values.size() / 3);
  for (size_t b = 0; b < blocks; ++b) {
    const size_t from = b * values.size() / blocks, to = (b + 1) * values.size() / blocks;
    out.push_back(median({values.begin() + static_cast<std::ptrdiff_t>(from),
                          values.begin() + static_cast<std::ptrdiff_t>(to)}));
  }
  return out;
}

// Median distance from the median as a share of the median, scaled to a standard deviation.
double spread(const std::vector<double>& values) {
  const double middle = median(values);
  if (middle <= 0) return 0;
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - middle));
  return 1.4826 * median(std::move(distances)) / middle;
}

SpeedChange change_of(const std::vector<double>& before, const std::vector<double>& after) {
  SpeedChange out;
  const double first = median(before), second = median(after);
  if (first <= 0 || second <= 0) return out;
  out.ratio = second / first;
  out.bound = std::max(kLeast, kSpreads * (spread(before) + spread(after)));
  size_t slower = 0;
  for (const double a : before)
    for (const double b : after) slower += b > a;
  out.effect = static_cast<double>(slower) / static_cast<double>(before.size() * after.size());
  const bool agree = out.ratio > 1 ? out.effect >= kEffect : out.effect <= 1 - kEffect;
  out.different = agree && std::abs(std::log(out.ratio)) > std::log1p(out.bound);
  return out;
}

// Sum of the distances from the median.
double distance(std::span<const double> values) {
  const double middle = median({values.begin(), values.end()});
  double sum = 0;
  for (const double value : values) sum += std::abs(value - middle);
  return sum;
}

}  // namespace

Pace pace_of(const ProgressPoints& progress) {
  Pace out;
  for (size_t i = 1; i < progress.size(); ++i) {
    const auto [time, iteration] = progress[i];
    const int64_t steps = iteration - progress[i - 1].second;
    const TimeNs took = time - progress[i - 1].first;
    if (steps <= 0 || took <= 0) continue;  // a restart, or two points in one second
    out.step_ms.push_back(static_cast<double>(took) / 1e6 / static_cast<double>(steps));
    out.at_ns.push_back(time);
    out.iteration.push_back(iteration);
  }
  out.median_ms = median(out.step_ms);
  out.blocks = medians(out.step_ms);
  out.noise = spread(out.blocks);
  return out;
}

std::optional<SpeedChange> compare(const Pace& before, const Pace& after) {
  if (std::min(before.step_ms.size(), after.step_ms.size()) < kIntervalsMin) return std::nullopt;
  if (std::min(before.blocks.size(), after.blocks.size()) < kBlocksMin) return std::nullopt;
  return change_of(before.blocks, after.blocks);
}

std::optional<ChangePoint> change_point(const Pace& pace) {
  const std::vector<double>& all = pace.step_ms;
  if (all.size() < 2 * kIntervalsMin) return std::nullopt;
  std::vector<double> logs;
  for (const double ms : all) logs.push_back(std::log(ms));
  size_t best = 0;
  double least = 0;
  for (size_t cut = kIntervalsMin; cut + kIntervalsMin <= all.size(); ++cut) {
    const std::span<const double> values(logs);
    const double cost = distance(values.first(cut)) + distance(values.subspan(cut));
    if (best == 0 || cost < least) best = cut, least = cost;
  }
  const std::span<const double> values(all);
  const SpeedChange change = change_of(medians(values.first(best)), medians(values.subspan(best)));
  if (!change.different) return std::nullopt;
  return ChangePoint{pace.at_ns[best - 1], pace.iteration[best - 1], change};
}

}  // namespace culprit::cli
