#include "core/detect/logs/stall.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "core/detect/logs/ending.h"
#include "core/detect/logs/view.h"

namespace culprit::detect {
namespace {

constexpr size_t kPhases = 65'536;  // open phases: one per rank
// The first step of a job compiles kernels and graphs, reads the first data and allocates memory.
constexpr TimeNs kFirstStepLongest = 900 * kNsPerSecond;
constexpr size_t kPaces = 64;  // steps used for the median step time

TimeNs median(std::vector<TimeNs> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

constexpr int64_t kFirstSteps = 2;
constexpr uint64_t kFewTimes = 3;

}  // namespace

void ProgressWatch::lines(uint64_t moves, TimeNs now) {
  if (moves == moves_) return;
  moves_ = moves;
  move(now);
  lines_ns_ = now;
  if (began_ns_ == kNoTime) began_ns_ = now;
}

void ProgressWatch::beat(const ProgressSeen& seen, TimeNs now) {
  const auto known = steps_.find(seen.rank);
  if (known == steps_.end() && steps_.size() >= limits::kWriters) return;
  int64_t& step = known == steps_.end() ? steps_.emplace(seen.rank, -1).first->second : known->second;
  // A smaller step is a restart from a checkpoint.
  if (seen.step == step) return;
  step = seen.step;
  move(now);
  beaten_ns_ = now;
  furthest_ = std::max(furthest_, seen.step);
  if (paced_step_ < 0) pacer_ = seen.rank;
  if (seen.rank != pacer_) return;
  if (paced_step_ >= 0 && seen.step > paced_step_ && now > paced_ns_) {
    if (paces_.size() == kPaces) paces_.erase(paces_.begin());
    paces_.push_back((now - paced_ns_) / (seen.step - paced_step_));
  }
  paced_step_ = seen.step;
  paced_ns_ = now;
}

void ProgressWatch::phase(const PhaseSeen& seen, TimeNs now) {
  const std::pair key(seen.rank, seen.name);
  if (!seen.begins) {
    // After a phase, the next step gets the usual time limit.
    if (open_.erase(key) > 0) moved_ns_ = std::max(moved_ns_, now);
  } else if (open_.size() < kPhases || open_.contains(key)) {
    open_[key] = now;
  }
}

bool ProgressWatch::may_stall(const StallOptions& options, TimeNs now) const {
  return moved_ns_ != kNoTime && now - moved_ns_ > std::max(options.after_ns, options.steps * step_ns_);
}

bool ProgressWatch::excused(const logs::JobLog& log, const StallOptions& options, TimeNs now) const {
  if (announced(log, now)) return true;
  const bool stepped = log.iterations().span() > kFirstSteps;  // also where their lines have equal times
  const bool paced = step_ns_ > 0 || !paces_.empty() || log.iterations().median_step_ns() > 0 || stepped;
  return !paced && moved_ns_ != kNoTime && moved_ns_ - started_ns_ <= options.after_ns &&
         now - moved_ns_ < kFirstStepLongest;
}

bool ProgressWatch::goes_on(const logs::JobLog& log, const StallOptions& options, TimeNs now) const {
  if (moved_ns_ != kNoTime) return !may_stall(options, now) || excused(log, options, now);
  return std::any_of(open_.begin(), open_.end(),
                     [now](const auto& phase) { return now - phase.second < kPhaseLongest; });
}

TimeNs ProgressWatch::beat_step() const { return median(paces_); }

TimeNs ProgressWatch::moved_ns(const logs::JobLog& log) const {
  const TimeNs reported = lines_ns_ == kNoTime ? kNoTime : log.iterations().last().time_ns;
  return std::max(beaten_ns_, reported == kNoTime ? lines_ns_ : reported);
}

bool ProgressWatch::announced(const logs::JobLog& log, TimeNs now) const {
  for (const auto& [key, began] : open_)
    if (now - began < kPhaseLongest) return true;
  if (now - moved_ns_ >= kPhaseLongest) return false;
  const TimeNs progress = log.iterations().last().time_ns;
  // Lines without times: their order of arrival counts.
  if (progress == kNoTime) return std::ranges::any_of(log.reported_since_progress(), announces_work);
  // What comes with most steps announces none.
  const auto comes_with_steps = [&](const logs::TemplateStats& t) {
    return t.count > kFewTimes && t.count * 4 >= log.iterations().moves();
  };
  for (const logs::ClusterId id : log.clusters()) {
    const logs::TemplateStats& t = log.templates()[id];
    if (t.last_ns == kNoTime || t.last_ns < progress || t.is_progress() || comes_with_steps(t)) continue;
    if (t.shape.stage == Stage::kCheckpoint || announces_work(log.miner().text(id))) return true;
  }
  return false;
}

bool ProgressWatch::several_processes(const logs::JobLog& log) const {
  const auto is_other = [](const logs::WriterStats& w) { return w.rank && *w.rank > 0; };
  return steps_.size() > 1 || std::ranges::any_of(log.writers(), is_other) || log.job().hosts.size() > 1;
}

std::optional<Finding> ProgressWatch::find_stall(const logs::JobLog& log, const StallOptions& options,
                                                 TimeNs now) {
  const logs::Iterations& iterations = log.iterations();
  const bool counts = !iterations.track().empty();
  step_ns_ = std::max(counts ? iterations.median_step_ns() : 0, beat_step());
  // Lines without times, or with equal ones: use their arrival, which is that of a block on a collector.
  if (step_ns_ == 0 && counts && iterations.span() > 0)
    step_ns_ = std::max<TimeNs>(1, (moved_ns_ - began_ns_) / iterations.span());
  const logs::ProgressPoint last = iterations.last();
  if (step_ns_ == 0 || !may_stall(options, now)) return std::nullopt;
  if ((counts && ended_well(log)) || announced(log, now)) return std::nullopt;
  Finding f;
  f.detector = DetectorKind::kSilence;
  f.kind = FindingKind::kFault;
  f.role = FindingRole::kCascade;  // any other known fault explains it
  f.by_no_device = true;
  f.confidence = 0.6;
  f.symptom = Symptom::kHang;
  f.component = Component::kUnknown;
  f.first_ns = moved_ns_;
  f.last_ns = now;
  const int64_t iteration = std::max(counts ? last.iteration : -1, furthest_);
  if (iteration >= 0) f.iteration = iteration;
  f.title = fmt::format("The job makes no progress after iteration {}", iteration);
  const std::string pace = step_ns_ > 1 ? ", one takes " + format_duration(step_ns_) : "";
  f.why.push_back(fmt::format("no iteration was finished for {}{}",
                              format_duration(std::max(options.after_ns, options.steps * step_ns_)), pace));
  for (const logs::LogSample& s : log.last_progress())
    f.evidence.push_back(evidence_at(log, s.place, s.text));
  f.lines = f.evidence.size();
  f.action = ActionKind::kCheck;
  f.remedy =
      several_processes(log)
          ? "Take stacks of the ranks (py-spy dump): the one that is not in the collective in which the "
            "others wait is the suspect."
          : "Take the program's stack (py-spy dump --pid PID): its last frames show what it waits for.";
  return f;
}

}  // namespace culprit::detect
