// The observations from a job's logs. Each line is read alone, by the holes of its rules (line_reader.h), and
// joined with the other lines of its writer: an operation, its group and the group's numbers are on different
// lines. Pure.
#pragma once

#include <functional>

#include "core/detect/hang/judge.h"
#include "core/detect/logs/view.h"
#include "core/rules/rule.h"

namespace culprit::hang {

// The rule of the line if the hang detector reads its lines; else null.
using RuleToRead = std::function<const rules::Rule*(uint32_t rule)>;
// Reads the stored lines of these rules from `after` on. Sets observations, exits, claims, logged and
// preparing.
HangInput observations_of(const logs::JobLog& log, const RuleToRead& rule_of, TimeNs after);

}  // namespace culprit::hang
