// Whether a job that failed may run again, and what must differ: the values of rules and detectors, and the
// advice of a diagnosis or a report. What follows from it is decided in core/recover. Pure.
#pragma once

#include <optional>
#include <string>

#include "model/finding.h"
#include "model/report.h"

namespace culprit {

// A `never` below this confidence gives the job one more attempt: a wrong stop costs the job, a missed one an
// attempt.
constexpr double kSureRestart = 0.75;

// Of a fault whose rule, detector or plugin states none. In doubt unknown: one more attempt.
Restart default_restart(Category category, ActionKind action);

// The value of a finding. `progress`: the job made progress in this attempt.
Restart restart_of(const Finding& finding, bool progress);

// The value that asks for more. Unknown gives way to any other.
Restart stricter(Restart a, Restart b);

// The reason of the value, without a full stop: "the same will happen again until somebody changes it".
// `progress`: the job made progress in this attempt.
std::string reason_of(Restart kind, bool progress);

// "elsewhere, without node-3", "no: the same will happen again", "later, when the service answers again".
std::string sentence(const RestartAdvice& advice);

// Of the whole report: that of its leading diagnosis. Without a verdict unknown; without a fault nothing.
std::optional<RestartAdvice> restart_of(const Report& report);

}  // namespace culprit
