// The request of a helper program: one line on a descriptor. Any thread.
#pragma once

#include <cstddef>
#include <string>

#include "base/time.h"

namespace culprit::io {

// Reads until a newline, the end, `most` bytes or `within_ns`; blocks as long. Returns what came before the
// newline, at most `most` bytes: a part of a line where the end or a limit came first.
std::string read_request_line(int descriptor, size_t most, TimeNs within_ns);

}  // namespace culprit::io
