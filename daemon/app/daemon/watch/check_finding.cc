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

}  // namespace

std::optional<PluginFinding> finding_of_check(const check::Outcome& outcome, TimeNs now) {
  if (outcome.answer == check::Answer::kNoAnswer) return std::nullopt;
  PluginFinding out;
  out.plugin = kCheckPlugin;
  out.id = "check.failed";
  out.title = "Host fails its check";
  out.time_ns = now;
  out.category = "hardware";
  out.component = "unknown";
  out.symptom = "other";
  if (outcome.answer == check::Answer::kPassed) {
    out.state = PluginState::kCleared;
    return out;
  }
  out.text = outcome.why;
  const std::string_view part = std::string_view(outcome.why).substr(0, outcome.why.find(':'));
  for (const PartWords& words : kPartWords)
    if (words.part == part) out.component = words.component, out.symptom = words.symptom;
  out.action = "isolate";
  out.restart = "elsewhere";
  out.remedy = "Leave the host out until the failed part is repaired and a check passes.";
  out.confidence = kSure;
  out.severity = PluginSeverity::kError;
  out.state = PluginState::kRaised;
  return out;
}

}  // namespace culprit::app
