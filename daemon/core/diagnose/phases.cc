#include "core/diagnose/phases.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/detect/logs/ending.h"

namespace culprit::diagnose {
namespace {

// A pause between progress lines exceeds the usual interval by this many steps, this time, and this share of
// the job.
constexpr TimeNs kPauseSteps = 3, kPauseLeast = 5 * kNsPerSecond, kPauseShare = 500;
// An unexplained pause counts as a stall from this many steps or this time on.
constexpr TimeNs kStallSteps = 10, kStallLeast = 60 * kNsPerSecond;

enum class Work : uint8_t { kEvaluates, kSaves, kStarts };
constexpr size_t kWorks = 3;

// Times of lines about one kind of work, ascending, as far as their places were stored.
struct WorkTimes {
  std::vector<TimeNs> times;
  struct Unknown {
    TimeNs from = 0, to = 0;
  };
  std::vector<Unknown> unknown;  // intervals with further lines at unknown times
};

class PhaseFinder {
 public:
  PhaseFinder(const logs::JobLog& log, const detect::RunEnd& outcome, TimeNs hang_ns)
      : log_(log), outcome_(outcome), hang_ns_(hang_ns), step_ns_(log.iterations().median_step_ns()) {}

  std::vector<JobPhase> run() {
    for (const logs::ProgressPoint& p : log_.iterations().track())
      if (p.time_ns != kNoTime && (points_.empty() || p.time_ns >= points_.back().time_ns))
        points_.push_back(p);
    if (points_.size() < 2 || step_ns_ <= 0 || log_.first_ns() == kNoTime) return {};
    least_ =
        std::max({kPauseSteps * step_ns_, kPauseLeast, (log_.last_ns() - log_.first_ns()) / kPauseShare});
    read_work();
    const TimeNs began = points_.front().time_ns, first = first_word();
    if (began > first) add(PhaseKind::kStart, first, began);
    for (size_t i = 1; i < points_.size(); ++i) between(points_[i - 1], points_[i]);
    ending(points_.back().time_ns);
    return bounded();
  }

 private:
  // The job's logs may begin before the job: a kernel log begins when the machine starts.
  TimeNs first_word() const {
    const TimeNs began = points_.front().time_ns;
    const std::vector<TimeNs>& starts = work_[static_cast<size_t>(Work::kStarts)].times;
    const auto recent = std::lower_bound(starts.begin(), starts.end(), began - detect::kPhaseLongest);
    if (recent != starts.end() && *recent < began) return *recent;
    return log_.first_ns() >= began - detect::kPhaseLongest ? log_.first_ns() : began;
  }

  void read_work() {
    for (const logs::ClusterId id : log_.clusters()) {
      const logs::TemplateStats& t = log_.templates()[id];
      // A failure message names no phase, whatever its words.
      if (t.is_progress() || t.shape.words > 0 || t.shape.kind != logs::ShapeKind::kPlain) continue;
      if (t.shape.stage == Stage::kCheckpoint)
        take(t, Work::kSaves);
      else if (t.shape.stage == Stage::kInit)
        take(t, Work::kStarts);
      else if (detect::names_phase(log_.miner().text(id)))
        take(t, Work::kEvaluates);
    }
    for (WorkTimes& w : work_) std::sort(w.times.begin(), w.times.end());
  }

  void take(const logs::TemplateStats& t, Work work) {
    WorkTimes& to = work_[static_cast<size_t>(work)];
    TimeNs last = t.first_ns;
    for (const logs::LogPlace& p : t.places) {
      if (p.time_ns == kNoTime) continue;
      // A line written once, after the beginning, is no second program start.
      if (work == Work::kStarts && t.first_ns > points_.front().time_ns) continue;
      to.times.push_back(p.time_ns);
      last = std::max(last, p.time_ns);
    }
    if (t.count > t.places.size() && t.last_ns != kNoTime && t.last_ns > last)
      to.unknown.push_back({last, t.last_ns});
  }

  // Time from the first to the last line of this work within a pause; negative: none.
  TimeNs length_of(Work work, TimeNs from, TimeNs to) const {
    const std::vector<TimeNs>& times = work_[static_cast<size_t>(work)].times;
    const auto first = std::upper_bound(times.begin(), times.end(), from);
    const auto end = std::lower_bound(first, times.end(), to);
    return first == end ? -1 : *(end - 1) - *first;
  }

  bool may_be_named(TimeNs from, TimeNs to) const {
    return std::ranges::any_of(work_, [&](const WorkTimes& w) {
      return std::ranges::any_of(w.unknown, [&](const auto& u) { return u.from < to && from < u.to; });
    });
  }

  // The phase named by the lines of a pause; training: none.
  PhaseKind named(TimeNs from, TimeNs to) const {
    if (length_of(Work::kStarts, from, to) >= 0) return PhaseKind::kRestart;
    const TimeNs saves = length_of(Work::kSaves, from, to), evaluates = length_of(Work::kEvaluates, from, to);
    if (saves < 0 && evaluates < 0) return PhaseKind::kTraining;
    return saves >= evaluates ? PhaseKind::kCheckpoint : PhaseKind::kEvaluation;
  }

  void between(const logs::ProgressPoint& a, const logs::ProgressPoint& b) {
    const TimeNs steps = std::max<int64_t>(1, b.iteration - a.iteration);
    const TimeNs pause = b.time_ns - a.time_ns - steps * step_ns_;
    PhaseKind kind = PhaseKind::kTraining;
    if (pause > least_) {
      kind = named(a.time_ns, b.time_ns);
      const bool long_enough = pause > std::max(kStallLeast, kStallSteps * step_ns_);
      if (kind == PhaseKind::kTraining && long_enough && !may_be_named(a.time_ns, b.time_ns))
        kind = PhaseKind::kStall;
    }
    add(kind, a.time_ns, b.time_ns);
  }

  void ending(TimeNs progressed) {
    const TimeNs last = log_.last_ns();
    if (last - progressed <= least_ && hang_ns_ == kNoTime) return;
    PhaseKind kind = PhaseKind::kEnd;
    if (!outcome_.ended_well && (outcome_.progress_stopped || hang_ns_ != kNoTime))
      kind = PhaseKind::kStall;
    else if (outcome_.stage == Stage::kCheckpoint)
      kind = PhaseKind::kCheckpoint;
    if (last > progressed) add(kind, progressed, last);
  }

  void add(PhaseKind kind, TimeNs from, TimeNs to) {
    if (!out_.empty() && out_.back().kind == kind)
      out_.back().last_ns = to;
    else
      out_.push_back({kind, from, to});
  }

  std::vector<JobPhase> bounded() {
    while (out_.size() > kPhasesMax) {
      const auto shortest =
          std::min_element(out_.begin() + 1, out_.end() - 1, [](const JobPhase& a, const JobPhase& b) {
            const auto length = [](const JobPhase& x) {
              return x.kind == PhaseKind::kTraining ? INT64_MAX : x.last_ns - x.first_ns;
            };
            return length(a) < length(b);
          });
      if (shortest->kind == PhaseKind::kTraining) break;
      shortest->kind = PhaseKind::kTraining;
      std::vector<JobPhase> all = std::exchange(out_, {});
      for (const JobPhase& p : all) add(p.kind, p.first_ns, p.last_ns);
    }
    return std::move(out_);
  }

  const logs::JobLog& log_;
  const detect::RunEnd& outcome_;
  const TimeNs hang_ns_, step_ns_;
  TimeNs least_ = 0;
  std::vector<logs::ProgressPoint> points_;  // with times, ascending
  std::array<WorkTimes, kWorks> work_;
  std::vector<JobPhase> out_;
};

}  // namespace

std::vector<JobPhase> phases_of(const logs::JobLog& log, const detect::RunEnd& outcome, TimeNs hang_ns) {
  return PhaseFinder(log, outcome, hang_ns).run();
}

}  // namespace culprit::diagnose
