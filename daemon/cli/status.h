// Output of `culprit status`. Pure; any thread. Makes no request to a daemon.
#pragma once

#include <string>

#include "cli/remote.h"

namespace culprit::cli {

// Formats the answer of GET /v1/status: the most important facts as sentences, the rest as names and values,
// including fields of later versions.
std::string status_text(const Json& status, const Zone& zone, bool color);

}  // namespace culprit::cli
