// `culprit simulate` is a separate program, culprit-simulate, since no operator needs it.
#pragma once

#include <string>
#include <vector>

namespace culprit::cli {

// Whether the words contain its verb, or request candidates for it.
bool is_for_simulator(const std::vector<std::string>& words);
// Replaces this process by that program. Returns only on failure, with an exit status and an error on
// standard error.
int start_simulator(const std::vector<std::string>& words);

}  // namespace culprit::cli
