// Whether a failed job may run again, and what must change first: the values of rules and detectors, and the
// advice of a diagnosis or report. core/recover decides what follows from the advice. Pure.
#pragma once

#include <optional>
#include <string>

#include "model/finding.h"
#include "model/report.h"

namespace culprit {

// A `never` below this confidence still allows one more attempt. A wrong stop costs the job; a missed stop
// costs one attempt.
constexpr double kSureRestart = 0.75;

// The value for a fault whose rule, detector or plugin sets none. In doubt kUnknown: one more attempt.
Restart default_restart(Category category, ActionKind action);

// The value for a finding. `progress`: the job made progress in this attempt.
Restart restart_of(const Finding& finding, bool progress);

// The stricter of two values. Any other value is stricter than kUnknown.
Restart stricter(Restart a, Restart b);

// The reason of the value, without a full stop: "the same will happen again until somebody changes it".
// `progress`: the job made progress in this attempt.
std::string reason_of(Restart kind, bool progress);

// "elsewhere, without node-3", "no: the same will happen again", "later, when the service answers again".
std::string sentence(const RestartAdvice& advice);

// The advice of the whole report: its leading diagnosis's. Without a verdict kUnknown; without a fault
// nullopt.
std::optional<RestartAdvice> restart_of(const Report& report);

}  // namespace culprit
