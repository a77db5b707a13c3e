// Exceptions that ended a process and that no rule knows: what a finding about them says. Pure; any thread.
#pragma once

#include <string_view>

#include "core/rules/rule.h"
#include "model/finding.h"

namespace culprit::diagnose {

// "mylib.errors.ShardGap: shard 17 ..." is of the kind mylib.errors.ShardGap; other words are of none.
// Borrowed from `text`.
std::string_view exception_kind(std::string_view text);

// Whether the program asked for its end, without an error.
bool is_planned_exit(std::string_view text);

// Stands in for the rule that is missing; without an id.
const rules::Rule& rule_of_uncaught();

// Replaces the finding's title by the exception's text. A traceback that is cut off leaves the cause open.
void describe_uncaught(std::string_view text, Finding& finding);

}  // namespace culprit::diagnose
