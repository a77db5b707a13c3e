#include "core/diagnose/slower_pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "core/detect/logs/ending.h"
#include "model/restart.h"

namespace culprit::diagnose {
namespace {

constexpr double kMuch = 5;  // times as long: planned changes are announced or smaller
// A line that announces other work must be within this many slower steps, or this time, of the change.
constexpr TimeNs kSteps = 3, kNear = 60 * kNsPerSecond;
constexpr double kPaceConfidence = 0.5;  // the slowdown is certain; that it is a fault is not

bool names_other_work(const std::string& text) {
  static constexpr std::array<std::string_view, 16> kWords = {
      "batch size", "batch_size", "batchsize", "micro batch", "sequence length", "seq_len",
      "seqlen",     "stage",      "phase",     "curriculum",  "resolution",      "accumulat",
      "unfreez",    "profil",     "eval",      "warmup"};
  std::string lower;
  for (const char c : text) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return std::ranges::any_of(kWords, [&](std::string_view word) { return lower.find(word) != lower.npos; }) ||
         detect::names_phase(text);
}

bool is_announced(const logs::JobLog& log, const detect::SlowerPace& pace) {
  const TimeNs around = std::max(kNear, kSteps * pace.after_ns);
  const auto near = [&](TimeNs at) {
    return at != kNoTime && at >= pace.from_ns - around && at <= pace.from_ns + around;
  };
  for (const logs::ClusterId id : log.clusters()) {
    const logs::TemplateStats& t = log.templates()[id];
    if (t.is_progress()) continue;
    const bool there =
        near(t.first_ns) || near(t.last_ns) ||
        std::ranges::any_of(t.places, [&](const logs::LogPlace& p) { return near(p.time_ns); });
    if (!there) continue;
    if (t.shape.stage == Stage::kCheckpoint || names_other_work(log.miner().text(id))) return true;
  }
  return false;
}

}  // namespace

std::optional<Diagnosis> slowdown_of(const detect::View& view, const detect::RunEnd& outcome) {
  if (!outcome.slower || outcome.ended_well || outcome.slower->factor() < kMuch) return std::nullopt;
  const detect::SlowerPace& pace = *outcome.slower;
  const logs::JobLog& log = *view.log;
  if (pace.from_ns == kNoTime || is_announced(log, pace)) return std::nullopt;
  Diagnosis d;
  d.detector = to_string(DetectorKind::kTemporal);
  d.title = fmt::format("Steps take {:.0f} times as long since {} UTC", pace.factor(),
                        format_time(pace.from_ns).substr(11, 8));
  d.symptom = Symptom::kSlowdown;
  d.stage = Stage::kIterative;
  d.time_ns = pace.from_ns;
  d.iteration = pace.iteration;
  d.confidence = kPaceConfidence;
  d.why.push_back(fmt::format("a step takes {}, and took {} until iteration {}",
                              format_duration(pace.after_ns), format_duration(pace.before_ns),
                              pace.iteration));
  d.why.emplace_back(
      "no line at that time announces other work: an evaluation, a checkpoint, another batch size");
  d.remedy =
      "Compare the hosts at that time: clocks and temperatures of devices, errors of links, the load of the "
      "file "
      "system. Traces of communication tell which rank the others wait for.";
  d.action.kind = ActionKind::kCheck;
  d.restart.why = reason_of(d.restart.kind, true);
  const auto at = std::ranges::find_if(log.iterations().track(), [&](const logs::ProgressPoint& p) {
    return p.iteration == pace.iteration && p.time_ns == pace.from_ns;
  });
  if (at != log.iterations().track().end()) {
    Evidence e;
    e.file = log.sources()[at->source].file;
    e.line = at->line;
    e.time_ns = pace.from_ns;
    e.text = fmt::format("iteration {}: the last at the old pace", pace.iteration);
    d.evidence.push_back(std::move(e));
  }
  return d;
}

}  // namespace culprit::diagnose
