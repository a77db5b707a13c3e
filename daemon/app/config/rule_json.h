// A rule as one JSON object: what `culprit rules list` prints and GET /v1/rules lists. Pure; any thread.
#pragma once

#include <string>

#include "core/rules/rule.h"

namespace culprit::app {

std::string to_json(const rules::Rule& rule);

}  // namespace culprit::app
