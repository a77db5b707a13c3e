// What the command's output cannot say of its own end: a signal that killed it, and a kill for memory in its
// control group. Lines for the log of the run. Reads files of /proc and /sys; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/run/child.h"
#include "base/time.h"

namespace culprit::app {

// How often the kernel killed a process of our control group for its memory limit; nothing: not known.
struct MemoryKills {
  std::string group;
  uint64_t kills = 0;
};
std::optional<MemoryKills> memory_kills();

// Lines with a time each; empty where the end needs none. `program`: its name alone.
std::string end_lines(const CommandEnd& end, const std::string& program, TimeNs now,
                      const std::optional<MemoryKills>& before, const std::optional<MemoryKills>& after);

// "SIGKILL", else "signal 99".
std::string signal_name(int signal);

}  // namespace culprit::app
