// `culprit simulate` is a program of its own, culprit-simulate: no operator needs it.
#pragma once

#include <string>
#include <vector>

namespace culprit::cli {

// Whether the words are its verb, or ask for candidates of it.
bool is_for_simulator(const std::vector<std::string>& words);
// Becomes that program. Returns only if it cannot, with an exit status and an error on standard error.
int start_simulator(const std::vector<std::string>& words);

}  // namespace culprit::cli
