#include "core/measured_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace culprit::core {
namespace {

constexpr size_t kTrack = 4096;    // points; beyond, every other one is dropped
constexpr size_t kOutlived = 3;    // the first of these may have been in progress
constexpr TimeNs kRunning = 2;     // steps after the last one in which a job may still be running
constexpr double kPaceSure = 0.3;  // that a slower pace is a fault; jobs change their own work

}  // namespace

void MeasuredSteps::add(int64_t step, TimeNs at) {
  if (step < 0 || at == kNoTime) return;
  if (!track_.empty() && step == track_.back().iteration) return;
  if (!track_.empty() && step < track_.back().iteration) {
    // Rows of slower ranks arrive late; a restart has later times.
    if (at <= track_.back().time_ns) return;
    track_.clear();
    every_ = 1;
  }
  if (step % every_ != 0) return;
  track_.push_back({at, step, 0, 0, 0});
  if (track_.size() < kTrack) return;
  every_ *= 2;
  std::erase_if(track_, [this](const logs::ProgressPoint& p) { return p.iteration % every_ != 0; });
}

size_t MeasuredSteps::after(TimeNs at) const {
  return static_cast<size_t>(
      std::ranges::count_if(track_, [at](const logs::ProgressPoint& p) { return p.time_ns > at; }));
}

bool MeasuredSteps::go_on_until(TimeNs at) const {
  if (track_.size() < kOutlived || at == kNoTime) return false;
  const TimeNs step =
      (track_.back().time_ns - track_.front().time_ns) / static_cast<TimeNs>(track_.size() - 1);
  return at <= track_.back().time_ns + kRunning * step;
}

Finding pace_finding(const detect::SlowerPace& pace, TimeNs until) {
  Finding f;
  f.kind = FindingKind::kSupport;
  f.detector = DetectorKind::kTemporal;
  f.symptom = Symptom::kSlowdown;
  f.by_no_device = true;
  f.first_ns = pace.from_ns;
  f.last_ns = until;
  f.iteration = pace.iteration;
  f.confidence = kPaceSure;
  f.title = fmt::format("Steps take {:.1f} times as long since {} UTC", pace.factor(),
                        format_time(pace.from_ns).substr(11, 8));
  f.why.push_back(fmt::format("a step takes {}, and took {} until iteration {}",
                              format_duration(pace.after_ns), format_duration(pace.before_ns),
                              pace.iteration));
  return f;
}

void drop_outlived(const MeasuredSteps& steps, TimeNs log_end, std::vector<Finding>& signs,
                   std::vector<Finding>& witnesses) {
  const bool to_the_end = steps.go_on_until(log_end);
  std::erase_if(signs, [&](Finding& f) {
    const bool outlived = f.last_ns == kNoTime ? to_the_end : steps.after(f.last_ns) >= kOutlived;
    if (!f.as_kernel || f.fatal || !outlived) return false;
    if (f.role != FindingRole::kRoot) return true;  // it explains nothing
    f.kind = FindingKind::kSupport;
    for (FindingSubject& s : f.subjects) s.strength = 0;
    witnesses.push_back(std::move(f));
    return true;
  });
}

}  // namespace culprit::core
