#include "model/restart.h"

#include <utility>

#include "model/headline.h"

namespace culprit {
namespace {

constexpr const char* kNotKnown = "the cause is not known: one more attempt at most";

// "node-3 (GPU 5)", "GPU 5", "node-3, node-4".
std::string left_out(const RestartAdvice& advice) {
  if (advice.hosts.empty()) return shown_list(advice.devices);
  std::string out = shown_list(advice.hosts);
  if (!advice.devices.empty()) out += " (" + shown_list(advice.devices) + ")";
  return out;
}

}  // namespace

Restart default_restart(Category category, ActionKind action) {
  switch (action) {
    case ActionKind::kIsolate:
      return Restart::kElsewhere;
    case ActionKind::kRestart:
      return Restart::kSame;
    case ActionKind::kRollback:
      return Restart::kOlder;
    case ActionKind::kRetry:
      return Restart::kLater;
    case ActionKind::kFix:
      return Restart::kNever;
    case ActionKind::kCheck:
      return category == Category::kHardware ? Restart::kElsewhere : Restart::kUnknown;
    case ActionKind::kMitigate:
    case ActionKind::kNone:
      break;
  }
  return Restart::kUnknown;
}

Restart restart_of(const Finding& f, bool progress) {
  if (progress && f.restart_after_steps) return *f.restart_after_steps;
  return f.restart.value_or(default_restart(f.category, f.action));
}

Restart stricter(Restart a, Restart b) { return a < b ? a : b; }

std::string reason_of(Restart kind, bool progress) {
  switch (kind) {
    case Restart::kNever:
      return "the same will happen again until somebody changes it";
    case Restart::kElsewhere:
      return "the host or device fails again while the job is on it";
    case Restart::kOlder:
      return progress ? "the state since the last good checkpoint is not to be trusted"
                      : "this checkpoint cannot be used";
    case Restart::kLater:
      return "a service must answer again first";
    case Restart::kSame:
      return progress ? "the job made progress, and nothing needs to differ" : "nothing needs to differ";
    case Restart::kUnknown:
      break;
  }
  return kNotKnown;
}

std::string sentence(const RestartAdvice& advice) {
  switch (advice.kind) {
    case Restart::kNever:
      return advice.sure ? "no: the same will happen again"
                         : "once at most: the same will probably happen again";
    case Restart::kElsewhere: {
      const std::string out = left_out(advice);
      return out.empty() ? "elsewhere: not on the host or device that failed" : "elsewhere, without " + out;
    }
    case Restart::kOlder:
      return "from an older checkpoint";
    case Restart::kLater:
      return "later, when the service answers again";
    case Restart::kSame:
      return "yes, as it is";
    case Restart::kUnknown:
      break;
  }
  return "once: the cause is not known";
}

std::optional<RestartAdvice> restart_of(const Report& report) {
  const Outcome is = outcome(report);
  if (is == Outcome::kVerdict)
    if (const Diagnosis* lead = leading(report); lead != nullptr && lead->about == About::kJob)
      return lead->restart.why.empty() ? std::nullopt : std::optional(lead->restart);
  const bool faulty = is == Outcome::kInconclusive || conclusion_of(report) == Conclusion::kFault;
  if (!faulty) return std::nullopt;
  RestartAdvice unknown;
  unknown.why = kNotKnown;
  return unknown;
}

}  // namespace culprit
