#include "core/detect/logs/pace.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace culprit::detect {
namespace {

constexpr size_t kWarmUpSteps = 3;  // steps in which a job compiles and fills its caches
constexpr size_t kSteps = 14;       // minimum number of steps
constexpr size_t kPart = 6;         // minimum number of steps of either part
// Number of blocks: timestamps in whole seconds hide one step, so several steps are joined.
constexpr size_t kBlocks = 48;
constexpr double kSpike = 1.5;     // times the median of its neighbours: an evaluation or a checkpoint
constexpr size_t kNeighbours = 4;  // neighbours on either side
constexpr double kStamp = 1e9;     // ns: resolution of timestamps in whole seconds
constexpr double kSlower = 1.1;    // smaller changes are as large as a job's own drift
// Threshold for the cumulative sum of deviations (CUSUM), in units of its spread. Chance alone exceeds 2 in
// one of 1,500 series. A slower pace is reported only if templates begin with it.
constexpr double kSure = 2;
constexpr double kScatter = 0.02;  // minimum spread, as a share of a step
constexpr double kLasts = 0.5;     // share of the excess that the last third of the slower part must keep

struct Step {
  double ns = 0;
  const logs::ProgressPoint* end = nullptr;
};

// Replaces single long steps by the median of their neighbours: only lasting changes count.
std::vector<Step> without_spikes(const std::vector<Step>& steps) {
  std::vector<Step> out = steps;
  std::vector<double> near;
  for (size_t i = 0; i < steps.size(); ++i) {
    near.clear();
    const size_t first = i > kNeighbours ? i - kNeighbours : 0;
    for (size_t k = first; k < std::min(steps.size(), i + kNeighbours + 1); ++k) near.push_back(steps[k].ns);
    const auto middle = near.begin() + static_cast<long>(near.size() / 2);
    std::nth_element(near.begin(), middle, near.end());
    // With equal timestamps the median is 0, and a step of one second is no spike.
    if (*middle > 0 && out[i].ns > kSpike * *middle + kStamp) out[i].ns = *middle;
  }
  return out;
}

std::vector<Step> steps_of(const std::vector<logs::ProgressPoint>& track) {
  std::vector<Step> steps;
  for (size_t i = kWarmUpSteps; i < track.size(); ++i) {
    const logs::ProgressPoint& a = track[i - 1];
    const logs::ProgressPoint& b = track[i];
    if (a.time_ns == kNoTime || b.time_ns == kNoTime || b.time_ns < a.time_ns) continue;
    const auto iterations = static_cast<double>(std::max<int64_t>(1, b.iteration - a.iteration));
    steps.push_back({static_cast<double>(b.time_ns - a.time_ns) / iterations, &b});
  }
  return without_spikes(steps);
}

double mean(std::span<const Step> steps) {
  double sum = 0;
  for (const Step& s : steps) sum += s.ns;
  return sum / static_cast<double>(steps.size());
}

// Number of steps before the change: up to the point at which the sum of deviations is farthest from zero.
size_t change_of(std::span<const Step> steps) {
  const double middle = mean(steps);
  double sum = 0, farthest = 0;
  size_t at = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    sum += steps[i].ns - middle;
    if (sum < farthest) farthest = sum, at = i + 1;
  }
  return at;
}

// The largest sum of deviations, in units of the value expected by chance.
double surprise(std::span<const Step> steps, size_t change) {
  const size_t width = (steps.size() + kBlocks - 1) / kBlocks;
  const double before = mean(steps.first(change)), after = mean(steps.subspan(change));
  double squares = 0, blocks = 0;
  for (size_t at = 0; at + width <= steps.size(); at += width, ++blocks) {
    double residual = 0;
    for (size_t i = at; i < at + width; ++i) residual += steps[i].ns - (i < change ? before : after);
    squares += residual * residual;
  }
  const double floor = kScatter * before * static_cast<double>(width);
  const double spread = std::sqrt(std::max(squares, floor * floor * blocks));
  const auto n = static_cast<double>(steps.size()), first = static_cast<double>(change);
  return (after - before) * first * (n - first) / n / spread;
}

}  // namespace

std::optional<SlowerPace> find_slower_pace(const std::vector<logs::ProgressPoint>& track) {
  const std::vector<Step> all = steps_of(track);
  if (all.size() < kSteps) return std::nullopt;
  const std::span<const Step> steps(all);
  const size_t change = change_of(steps);
  if (change < kPart || steps.size() - change < kPart) return std::nullopt;
  const std::span<const Step> later = steps.subspan(change);
  const double before = mean(steps.first(change)), after = mean(later);
  if (before <= 0 || after < kSlower * before || surprise(steps, change) < kSure) return std::nullopt;
  const double last = mean(later.subspan(later.size() - later.size() / 3));
  if (last < before + kLasts * (after - before)) return std::nullopt;
  const logs::ProgressPoint& from = *steps[change - 1].end;
  return SlowerPace{from.time_ns, from.iteration, static_cast<TimeNs>(before), static_cast<TimeNs>(after)};
}

}  // namespace culprit::detect
