// Reads the text of a tool or of a process in a child without rights: no capability, never root, no
// descriptor but its answer. A fault in a reader of such a text gives its writer nothing, and ends the child
// alone. Blocking; one thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "capture/tool_text.h"

namespace culprit::capture {

using StackReader = Result<Stacks> (*)(std::string_view text);

// What `read` gives for the text, cut to the limits of tool_text.h. An error is the reader's, or says how the
// child ended.
Result<Stacks> read_apart(StackReader read, std::string_view text, TimeNs within_ns);

}  // namespace culprit::capture
