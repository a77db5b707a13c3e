// A RasState as a line of JSON: {"kind":"ras",…}, formats.md section 4. A pure function; any thread.
#pragma once

#include <string>

#include "model/ras.h"

namespace culprit {

// The line without a newline, at most limits::kLineBytes. Communicators that do not fit are omitted and
// counted in `dropped`.
std::string ras_line(const RasState& state, const std::string& job);

}  // namespace culprit
