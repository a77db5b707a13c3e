// Candidates for the words of `culprit`: jobs, diagnoses, hosts and sources of a daemon, and rules.
#pragma once

#include <string>
#include <vector>

#include "cli/complete.h"

namespace culprit::cli {

// Blocks for some hundredths of a second at most.
std::vector<std::string> candidates(const Completing& at);

}  // namespace culprit::cli
