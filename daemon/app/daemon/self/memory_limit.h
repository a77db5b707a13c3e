// The memory limit of the process, and the part of it for all engines. Beyond the limit the kernel kills the
// daemon. Reads files of /proc and of the control groups; cheap, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace culprit::app {

struct MemoryLimit {
  uint64_t bytes = 0;
  bool of_group = false;  // true: a control group's limit; false: the memory of the machine
};
// The lowest limit of the process's control group and its ancestors (version 2, or the memory controller of
// version 1). Without a limit: the memory of the machine.
MemoryLimit memory_limit(const std::string& proc = "/proc", const std::string& groups = "/sys/fs/cgroup");

// Memory of all engines. `configured`: [engine] memory. 0: half of a control group's limit, since reports,
// dumps, batches and the rules need the rest; without such a limit, a sixteenth of the machine's memory.
uint64_t engine_memory(uint64_t configured, const MemoryLimit& limit);

// Number of processes that the kernel killed for lack of memory since the boot; 0: unknown.
uint64_t oom_kills(const std::string& proc = "/proc");

}  // namespace culprit::app
