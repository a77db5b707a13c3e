#include <algorithm>

#include "core/detect/analysis.h"

namespace culprit::detect {
namespace {

constexpr TimeNs kHangAfter = 60 * kNsPerSecond;  // DETECTORS.md 3: max(60 s, 5 x the median step)
constexpr TimeNs kHangSteps = 5;

// The last time, but for each the line: the last words of a planned end, of a long phase, of failure.
struct LastWords {
  TimeNs well = kNoTime, phase = kNoTime, failure = kNoTime;
  bool well_untimed = false;
};

LastWords last_words(const logs::JobLog& log) {
  LastWords out;
  for (logs::ClusterId id : log.clusters()) {
    const logs::TemplateStats& t = log.templates()[id];
    if (t.shape.well && t.shape.words < 2) {
      out.well = std::max(out.well, t.last_ns);
      out.well_untimed = out.well_untimed || t.last_ns == kNoTime;
    }
    if (t.shape.stage == Stage::kCheckpoint) out.phase = std::max(out.phase, t.last_ns);
    const bool failed =
        t.shape.kind == logs::ShapeKind::kException || t.shape.kind == logs::ShapeKind::kRootCause;
    if (failed) out.failure = std::max(out.failure, t.last_ns);
  }
  return out;
}

}  // namespace

Fate find_fate(const View& view) {
  const logs::JobLog& log = *view.log;
  const logs::Iterations& iterations = log.iterations();
  Fate fate;
  fate.last_ns = log.last_ns();
  fate.last_progress_ns = iterations.last().time_ns;
  fate.last_iteration = iterations.track().empty() ? -1 : iterations.last().iteration;
  fate.step_ns = iterations.median_step_ns();
  const LastWords words = last_words(log);
  // A planned end may be told long after the last step (a final evaluation), but nothing fails after it.
  fate.ended_well =
      words.well_untimed ||
      (words.well != kNoTime && (fate.last_progress_ns == kNoTime || words.well >= fate.last_progress_ns) &&
       words.failure <= words.well);
  if (fate.last_progress_ns != kNoTime && fate.last_ns != kNoTime && fate.step_ns > 0) {
    const TimeNs patience = std::max(kHangAfter, kHangSteps * fate.step_ns);
    const bool long_phase = words.phase != kNoTime && words.phase >= fate.last_progress_ns;
    fate.progress_stopped =
        !fate.ended_well && !long_phase && fate.last_ns - fate.last_progress_ns > patience;
  }
  if (fate.last_iteration >= 0) {
    const bool saving =
        words.phase != kNoTime && fate.last_progress_ns != kNoTime && words.phase >= fate.last_progress_ns;
    fate.stage = saving ? Stage::kCheckpoint : fate.ended_well ? Stage::kTeardown : Stage::kIterative;
  }
  return fate;
}

}  // namespace culprit::detect
