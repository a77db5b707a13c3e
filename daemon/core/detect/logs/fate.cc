#include <algorithm>
#include <map>

#include "core/detect/logs/analysis.h"
#include "core/detect/logs/ending.h"

namespace culprit::detect {
namespace {

constexpr TimeNs kHangAfter = 60 * kNsPerSecond;  // docs/detectors.md: max(60 s, 5 x the median step)
constexpr TimeNs kHangSteps = 5;

constexpr size_t kWarmUpReports = 3;  // progress reports; before them a job compiles and fills its caches

// Time of the last line that names a phase: a checkpoint, or other work outside the iterations.
TimeNs last_phase(const logs::JobLog& log, bool checkpoint) {
  TimeNs last = kNoTime;
  for (const logs::ClusterId id : log.clusters()) {
    const logs::TemplateStats& t = log.templates()[id];
    const bool names = checkpoint
                           ? t.shape.stage == Stage::kCheckpoint
                           : !t.is_progress() && t.shape.words < 2 && names_phase(log.miner().text(id));
    if (names) last = std::max(last, t.last_ns);
  }
  return last;
}

// Longest time between two progress reports after warm-up. It covers an evaluation after each epoch and a
// report every thousand iterations.
TimeNs longest_report(const logs::Iterations& iterations) {
  const std::vector<logs::ProgressPoint>& track = iterations.track();
  TimeNs longest = 0;
  for (size_t i = kWarmUpReports; i < track.size(); ++i)
    if (track[i].time_ns != kNoTime && track[i - 1].time_ns != kNoTime)
      longest = std::max(longest, track[i].time_ns - track[i - 1].time_ns);
  return longest;
}

// Whether one file reports progress repeatedly with the same line. Numbers in many files ("profiler ... step
// 18015") may increase by chance; their end is no stop.
bool reports_steadily(const logs::Iterations& iterations) {
  constexpr size_t kReports = 3;
  std::map<std::pair<uint32_t, uint32_t>, size_t> reports;
  return std::ranges::any_of(iterations.track(), [&](const logs::ProgressPoint& point) {
    return ++reports[{point.source, point.form}] >= kReports;
  });
}

}  // namespace

RunEnd find_outcome(const View& view) {
  const logs::JobLog& log = *view.log;
  const logs::Iterations& iterations = log.iterations();
  RunEnd outcome;
  outcome.last_ns = log.last_ns();
  outcome.last_progress_ns = iterations.last().time_ns;
  outcome.last_iteration = iterations.track().empty() ? -1 : iterations.last().iteration;
  outcome.slower = find_slower_pace(iterations.track());
  outcome.step_ns = iterations.median_step_ns();
  outcome.ended_well = ended_well(log);
  outcome.end_stated = outcome.ended_well || states_end(log);
  const bool timed = outcome.last_progress_ns != kNoTime && outcome.last_ns != kNoTime;
  const TimeNs checkpoint = last_phase(log, true);
  const bool saving = timed && checkpoint != kNoTime && checkpoint >= outcome.last_progress_ns;
  if (timed && outcome.step_ns > 0) {
    const TimeNs patience =
        std::max({kHangAfter, kHangSteps * outcome.step_ns, 2 * longest_report(iterations)});
    const TimeNs silent = outcome.last_ns - outcome.last_progress_ns;
    const bool phase = silent < kPhaseLongest && last_phase(log, false) >= outcome.last_progress_ns;
    const bool stopped = silent > patience && reports_steadily(iterations);
    outcome.progress_stopped = !outcome.ended_well && !saving && !phase && stopped;
  }
  if (outcome.last_iteration >= 0)
    outcome.stage = saving ? Stage::kCheckpoint : outcome.ended_well ? Stage::kTeardown : Stage::kIterative;
  return outcome;
}

}  // namespace culprit::detect
