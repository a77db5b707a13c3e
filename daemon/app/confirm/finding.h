// Makes a rule on findings of a confirmed diagnosis that has no line of its own. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "app/confirm/rule.h"
#include "base/status.h"

namespace culprit::app {

struct FindingMark {
  std::string pattern, sample;
  std::string rule = {};  // the library's rule that fires on the line; empty: a finding
};

struct FindingCause {
  FindingMark found;
  std::optional<FindingMark> company;  // distinguishes this fault from others with the same finding
  std::string by = "host";             // scope in which the two must occur together
  TimeNs span_ns = 0;
};

// The finding that the diagnosis rests on, and its company: what another detector, a plugin or a rule of the
// library saw on the same host, rank or device at that time. With a finding about lines, a rule is no
// company, since it is about a line too. Without company, the finding's words must name a place in a program,
// or a plugin's fault. `names`: of hosts and the job. Errors: nothing distinguishes this fault from others of
// its kind; a successful job has it too.
Result<FindingCause> finding_of(const Report& report, const Diagnosis& diagnosis,
                                const ConfirmContext& context, const std::set<std::string>& names);

// Whether the job's findings contain the cause.
bool has_cause(const std::vector<SeenFinding>& findings, const FindingCause& cause);

// The rules of a file: the fault's rule, and a helper if its company has no rule. `head`: the keys from title
// to blames, `tail`: remedy and action, as Lua.
struct FindingRuleText {
  std::string id, head, tail;
};
std::string lua_of(const FindingCause& cause, const FindingRuleText& text);

}  // namespace culprit::app
