// Programs of ours that a verb starts in its place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::app {

// Becomes the helper program with these arguments, as exec does. Returns only if it cannot.
Error become_program(std::string_view name, const std::vector<std::string>& words);

}  // namespace culprit::app
