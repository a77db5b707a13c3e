// How a part of a message stands in it: said by the writer, or only mentioned. Programs also print patterns
// that they look for, samples of their data, commands, source text, what did not happen, and what happened
// long ago. The frame around the part decides, never its own words. Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/time.h"

namespace culprit::logs {

// A part of a message that a rule matched: [begin, end).
struct MessagePart {
  std::string_view message;
  size_t begin = 0, end = 0;
};

// Whether the message only mentions the part. `time_ns`: of the line; kNoTime: not known.
bool is_mentioned(const MessagePart& part, TimeNs time_ns);

// Whether the part stands within the message of a Python exception, behind words of the program: "RuntimeError:
// the check found: ...". What another program said is quoted there.
bool is_in_exception(const MessagePart& part);

}  // namespace culprit::logs
