// Captures one process: its state, its stacks by the first permitted tool that returns any, and a Flight
// Recorder dump if the recorder is armed. The process continues as before: a tool stops it only while
// reading its stacks. A process that a tracer would disturb, or that would block a tracer, is not traced.
//
// Blocking, for `within_ns` and a little more, unless the kernel blocks the caller; one thread.
#pragma once

#include "capture/request.h"

namespace culprit::capture {

// Why no program may trace the process now; empty: tracing is permitted. `answer.look` must be set.
std::string why_not_traced(const ProcessLook& look);

Answer capture_process(const Request& request, const Target& target, TimeNs within_ns);

// Captures only the state, without reading the process's memory.
Answer look_briefly(const Target& target, std::string why);

}  // namespace culprit::capture
