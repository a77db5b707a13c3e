// What the command's output cannot say of its own end: its exit code, a signal that killed it, and a kill for
// memory in its control group. Lines for the log of the run. Reads files of /proc and /sys; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/run/child.h"
#include "base/time.h"

namespace culprit::app {

// How often the kernel killed a process for memory: of our control group, at its limit, and on the host as a
// whole.
struct MemoryKills {
  std::string group;  // empty: not known
  uint64_t kills = 0;
  std::optional<uint64_t> host = {};  // nothing: not known
};
std::optional<MemoryKills> memory_kills();

// Lines with a time each; empty where the end needs none. `program`: its name alone.
std::string end_lines(const CommandEnd& end, const std::string& program, TimeNs now,
                      const std::optional<MemoryKills>& before, const std::optional<MemoryKills>& after);

// As the lines begin: UTC with milliseconds.
std::string run_time(TimeNs now);

// "SIGKILL", else "signal 99".
std::string signal_name(int signal);

}  // namespace culprit::app
