// `culprit status` for people. Pure; any thread. It never asks a daemon itself.
#pragma once

#include <string>

#include "cli/remote.h"

namespace culprit::cli {

// What GET /v1/status answered: what a person looks for first as a sentence, all else as names and values,
// also what a later daemon tells.
std::string status_text(const Json& status, const Zone& zone, bool color);

}  // namespace culprit::cli
