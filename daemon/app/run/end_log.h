// Facts about the command's end that its output lacks: its exit code, a signal that killed it, and a kill for
// memory in its control group. Lines for the log of the run. Reads files of /proc and /sys; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/run/child.h"
#include "base/time.h"

namespace culprit::app {

// Number of kernel kills for lack of memory: in our control group, at its limit, and on the whole host.
struct MemoryKills {
  std::string group;  // empty: not known
  uint64_t kills = 0;
  std::optional<uint64_t> host = {};  // nothing: not known
};
std::optional<MemoryKills> memory_kills();

// Lines with a time each; empty for an end that needs no line. `program`: its name alone.
std::string end_lines(const CommandEnd& end, const std::string& program, TimeNs now,
                      const std::optional<MemoryKills>& before, const std::optional<MemoryKills>& after);

// Time in the form in which lines begin: UTC with milliseconds.
std::string run_time(TimeNs now);

// "SIGKILL", else "signal 99".
std::string signal_name(int signal);

}  // namespace culprit::app
