// Waits for the end of a process by a descriptor of it. Blocking; any thread.
#pragma once

#include <sys/types.h>

#include "base/time.h"

namespace culprit::io {

// Whether the process ends within this time; true at once for one that has ended, waited for or not. `pid`
// must be a child that no other thread waits for: the number of a reaped one may be a new process's.
bool ends_within(pid_t pid, TimeNs within_ns);

}  // namespace culprit::io
