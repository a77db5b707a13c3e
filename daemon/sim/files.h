// The folder that a simulated job is written to. On the caller's thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit::sim {

// It is not there, or empty.
Status check_empty(const std::string& out);
Status write_text(const std::string& path, std::string_view text);

}  // namespace culprit::sim
