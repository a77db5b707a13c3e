// The output folder of a simulated job. The caller's thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit::sim {

// The folder must not exist or must be empty.
Status check_empty(const std::string& out);
Status write_text(const std::string& path, std::string_view text);

}  // namespace culprit::sim
