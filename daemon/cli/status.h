// Output of `culprit status`. Pure; any thread. Makes no request to a daemon.
#pragma once

#include <string>

#include "cli/remote.h"

namespace culprit::cli {

// The answer of GET /v1/status in eight lines: who it is and how it does, jobs, what it reads, where it sends
// or what it receives, alerts, store, its own cost, and what is lost or wrong.
std::string status_text(const Json& status, const Zone& zone, bool color);

// The first of these lines, and each field by its name, those of later versions among them.
std::string status_fields(const Json& status, const Zone& zone, bool color);

}  // namespace culprit::cli
