// The observations of a job's logs: each line of a watchdog read alone (watchdog_lines.h), then joined by its
// writer. A watchdog prints an operation, its group and the group's numbers in different lines. Pure.
#pragma once

#include <functional>

#include "core/detect/hang/judge.h"
#include "core/detect/logs/view.h"
#include "core/rules/rule.h"

namespace culprit::hang {

// The rule of a line, if its lines are read; else null.
using RuleToRead = std::function<const rules::Rule*(uint32_t rule)>;
// Reads the kept lines of these rules, without those before `after`. Sets all of the input but `world` and
// `iterated`.
HangInput observations_of(const logs::JobLog& log, const RuleToRead& rule_of, TimeNs after);

}  // namespace culprit::hang
