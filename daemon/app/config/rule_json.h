// A rule as one JSON object. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/rules/rule.h"

namespace culprit::app {

// The form in `culprit rules list` and GET /v1/rules.
std::string to_json(const rules::Rule& rule);
// The full form in `culprit rules explain` and GET /v1/rules/ID.
std::string explained_json(const rules::Rule& rule);

// "never", "never, after steps same".
std::string restart_of(const rules::Rule& rule);
std::string_view blame_of(const rules::Rule& rule);
std::vector<std::string> sources_of(const rules::Rule& rule);
// The literals that lines are searched for, in order.
std::vector<std::string> literals_of(const rules::Rule& rule);

}  // namespace culprit::app
