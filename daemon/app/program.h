// Starts our other programs in place of a verb.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::app {

// Replaces this process by the helper program with these arguments, like exec. Returns only on failure.
Error become_program(std::string_view name, const std::vector<std::string>& words);

// Replaces the process by the running program with these words; the first is its name. Returns on failure.
void start_again(const std::vector<std::string>& words);

}  // namespace culprit::app
