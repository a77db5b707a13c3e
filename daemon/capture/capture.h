// Captures one process: its state, its stacks by the first tool that may look and gives some, and a dump of
// the Flight Recorder where it is armed. The process runs on as before: a tool stops it only while it reads
// its stacks, and a process that a tracer would disturb or hang at is not traced at all.
//
// Blocking, for `within_ns` and a little more unless the kernel blocks the caller; one thread.
#pragma once

#include "capture/request.h"

namespace culprit::capture {

// Why no program may trace the process now; empty: one may. `answer.look` is there.
std::string why_not_traced(const ProcessLook& look);

Answer capture_process(const Request& request, const Target& target, TimeNs within_ns);

// The state alone, which reads nothing of the process's memory.
Answer look_briefly(const Target& target, std::string why);

}  // namespace culprit::capture
