// Exceptions that ended a process and match no rule: the content of their findings. Pure; any thread.
#pragma once

#include <string_view>

#include "core/rules/rule.h"
#include "model/finding.h"

namespace culprit::diagnose {

// "mylib.errors.ShardGap: shard 17 ..." has the kind mylib.errors.ShardGap; other texts have none. Borrowed
// from `text`.
std::string_view exception_kind(std::string_view text);

// Whether the program ended itself on purpose, without an error.
bool is_planned_exit(std::string_view text);

// A placeholder for the missing rule; without an id.
const rules::Rule& rule_of_uncaught();

// Replaces the finding's title with the exception's text. After a truncated traceback, the cause stays open.
void describe_uncaught(std::string_view text, Finding& finding);

}  // namespace culprit::diagnose
