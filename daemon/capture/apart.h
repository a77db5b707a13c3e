// Parses the text of a tool or of a process in a child without rights: no capability, never root, no
// descriptor except its answer. An exploited parser gives the text's writer no rights, and a crash ends
// only the child. Blocking; one thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "capture/tool_text.h"

namespace culprit::capture {

using StackReader = Result<Stacks> (*)(std::string_view text);

// Result of `read` for the text, cut to the limits of tool_text.h. An error comes from the reader, or says
// how the child ended.
Result<Stacks> read_apart(StackReader read, std::string_view text, TimeNs within_ns);

}  // namespace culprit::capture
