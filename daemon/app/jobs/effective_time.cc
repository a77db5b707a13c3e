#include "app/jobs/effective_time.h"

#include <algorithm>

namespace culprit::app {
namespace {

constexpr size_t kPoints = 512;
constexpr int64_t kStepsLeast = 10;  // minimum: the first steps compile and allocate
constexpr size_t kStretchesLeast = 3;
// Multiple of the median that a stretch may take before the excess counts as lost, since pace varies.
constexpr double kVaries = 1.5;
// Maximum difference of hosts' clocks and lines' times from the daemon's clock.
constexpr TimeNs kClocks = 300 * kNsPerSecond;

struct Stretch {
  double ns = 0, steps = 0;
  double pace() const { return ns / steps; }
};

// Stretches between neighbouring points. Times that go back belong to repeated steps.
std::vector<Stretch> stretches_of(std::span<const StepTime> track) {
  std::vector<Stretch> out;
  TimeNs last = track.front().first;
  int64_t step = track.front().second;
  for (const auto& [at, next] : track.subspan(1)) {
    if (next <= step) continue;
    out.push_back({static_cast<double>(std::max<TimeNs>(0, at - last)), static_cast<double>(next - step)});
    last = std::max(last, at);
    step = next;
  }
  return out;
}

// Median over all steps instead of stretches, whose lengths differ.
double median_pace(std::vector<Stretch> all) {
  std::sort(all.begin(), all.end(), [](const Stretch& a, const Stretch& b) { return a.pace() < b.pace(); });
  double steps = 0, passed = 0;
  for (const Stretch& one : all) steps += one.steps;
  for (const Stretch& one : all)
    if ((passed += one.steps) * 2 >= steps) return one.pace();
  return all.back().pace();
}

}  // namespace

std::optional<double> effective_time_ratio(std::span<const StepTime> track, const RunTimes& times) {
  if (track.empty() || times.first_ns == kNoTime || times.until_ns == kNoTime) return std::nullopt;
  const std::vector<Stretch> stretches = stretches_of(track);
  const TimeNs first = std::min(times.first_ns, track.front().first);
  const TimeNs last = track.back().first;
  const TimeNs all = times.until_ns - first;
  const bool of_this_run =
      track.front().first >= times.first_ns - kClocks && last <= times.until_ns + kClocks;
  const int64_t steps = track.back().second - track.front().second;
  if (!of_this_run || all <= 0 || steps < kStepsLeast || stretches.size() < kStretchesLeast)
    return std::nullopt;
  const double pace = median_pace(stretches);
  if (pace <= 0) return std::nullopt;
  double used = pace;  // the first step itself
  for (const Stretch& one : stretches) used += one.pace() <= kVaries * pace ? one.ns : one.steps * pace;
  // Adds steps since the last point; their numbers are unknown.
  if (times.progressed_ns > last) used += static_cast<double>(times.progressed_ns - last);
  return std::clamp(used / static_cast<double>(all), 0.0, 1.0);
}

void StepTrack::add(TimeNs at, int64_t step) {
  if (at == kNoTime || (!points_.empty() && step <= points_.back().second)) return;
  // Replaces the last point until its place in the thinned list is due, so that it stays current.
  if (points_.size() > 1 && seen_ % every_ != 0)
    points_.back() = {at, step};
  else
    points_.emplace_back(at, step);
  ++seen_;
  if (points_.size() < kPoints) return;
  for (size_t i = 0; 2 * i < points_.size(); ++i) points_[i] = points_[2 * i];
  points_.resize((points_.size() + 1) / 2);
  every_ *= 2;
}

}  // namespace culprit::app
