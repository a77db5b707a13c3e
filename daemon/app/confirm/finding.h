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
  std::string rule = {};  // of the library, that fires on it; empty: it is a finding
};

struct FindingCause {
  FindingMark found;
  std::optional<FindingMark> company;  // what tells this fault from others that the detector sees alike
  std::string by = "host";             // scope in which the two belong together
  TimeNs span_ns = 0;
};

// The finding that the diagnosis rests on, and what another detector, a plugin or a rule of the library saw
// of the same host, rank or device at that time; with a finding about lines a rule does not count, since
// it is about a line too. Without company, the finding's own words must name a place in
// a program, or a plugin's fault. `names`: of hosts and the job. Errors: nothing tells this fault from
// others of its kind; a successful job has it too.
Result<FindingCause> finding_of(const Report& report, const Diagnosis& diagnosis,
                                const ConfirmContext& context, const std::set<std::string>& names);

// Whether the findings of a job have the cause.
bool has_cause(const std::vector<SeenFinding>& findings, const FindingCause& cause);

// The rules of a file: the one of the fault, and a helper where its company has none. `head`: the keys
// from title to blames, `tail`: remedy and action, as Lua.
struct FindingRuleText {
  std::string id, head, tail;
};
std::string lua_of(const FindingCause& cause, const FindingRuleText& text);

}  // namespace culprit::app
