// Output of `culprit status`. Pure; any thread. Makes no request to a daemon.
#pragma once

#include <string>

#include "cli/remote.h"

namespace culprit::cli {

// The answer of GET /v1/status in eight lines: identity and health, jobs, inputs, target or sources, alerts,
// store, own cost, and losses or problems. With a controller one more, below the alerts.
std::string status_text(const Json& status, const Zone& zone, bool color);

// The first of these lines, and each field by its name, including fields of later versions.
std::string status_fields(const Json& status, const Zone& zone, bool color);

}  // namespace culprit::cli
