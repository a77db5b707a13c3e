// How much memory the process may take, and the part of it that engines may take together. Beyond the limit
// the kernel kills the daemon. Reads files of /proc and of the control groups; cheap, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace culprit::app {

struct MemoryLimit {
  uint64_t bytes = 0;
  bool of_group = false;  // a control group's limit; else the memory of the machine
};
// The lowest limit of the process's control group and those above it (version 2, or the memory controller of
// version 1). Without one: the memory of the machine.
MemoryLimit memory_limit(const std::string& proc = "/proc", const std::string& groups = "/sys/fs/cgroup");

// Memory of all engines. `configured`: [engine] memory; 0: half of a control group's limit, since reports,
// dumps, batches and the rules need the rest, or a sixteenth of the machine.
uint64_t engine_memory(uint64_t configured, const MemoryLimit& limit);

// Processes that the kernel has killed for lack of memory since the boot; 0: unknown.
uint64_t oom_kills(const std::string& proc = "/proc");

}  // namespace culprit::app
