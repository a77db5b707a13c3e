#include "app/daemon/watch/check_finding.h"

namespace culprit::app {
namespace {

struct PartWords {
  std::string_view part, component, symptom;
};
constexpr PartWords kPartWords[] = {{"memory", "host_memory", "other"},
                                    {"memory errors", "host_memory", "other"},
                                    {"disk", "storage", "other"},
                                    {"pcie", "pcie", "other"}};
constexpr double kSure = 0.95;  // a test that this host failed, alone on it

constexpr double kDiffers = 0.9;  // another library could give other bits, too

PluginFinding checked_finding(const check::Outcome& outcome, TimeNs now) {
  PluginFinding out;
  out.plugin = kCheckPlugin;
  out.time_ns = now;
  out.category = "hardware";
  out.component = "unknown";
  out.symptom = "other";
  out.state = PluginState::kCleared;
  if (outcome.answer == check::Answer::kPassed) return out;
  out.state = PluginState::kRaised;
  out.severity = PluginSeverity::kError;
  out.text = outcome.why;
  out.action = "isolate";
  out.restart = "elsewhere";
  return out;
}

}  // namespace

std::optional<PluginFinding> finding_of_check(const check::Outcome& outcome, TimeNs now) {
  if (outcome.answer == check::Answer::kNoAnswer) return std::nullopt;
  PluginFinding out = checked_finding(outcome, now);
  out.id = "check.failed";
  out.title = "Host fails its check";
  if (outcome.answer == check::Answer::kPassed) return out;
  const std::string_view part = std::string_view(outcome.why).substr(0, outcome.why.find(':'));
  for (const PartWords& words : kPartWords)
    if (words.part == part) out.component = words.component, out.symptom = words.symptom;
  out.remedy = "Leave the host out until the failed part is repaired and a check passes.";
  out.confidence = kSure;
  return out;
}

std::optional<PluginFinding> finding_of_alignment(const check::Outcome& outcome, TimeNs now) {
  if (outcome.answer == check::Answer::kNoAnswer) return std::nullopt;
  PluginFinding out = checked_finding(outcome, now);
  out.id = "align.failed";
  out.title = "Device computes other bits than its peers";
  if (outcome.answer == check::Answer::kPassed) return out;
  out.component = outcome.why.starts_with("cpu") ? "cpu" : "gpu";
  out.symptom = "numeric";
  out.remedy = "Leave the host out, and have the device tested: a fixed step gives wrong bits on it.";
  out.confidence = kDiffers;
  return out;
}

}  // namespace culprit::app
