// The culpritd of one run: its configuration and process. The process is outside the job's process group, has
// a lower priority, and ends when this process ends in any way. One thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "app/run/folder.h"
#include "app/run/launch.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

struct PrivateDaemonOptions {
  std::string hang_after;  // "60s"; empty: the daemon's default
  bool kernel = false;     // the kernel's messages are readable
};

// The text of its culpritd.toml. Pure.
std::string private_config(const RunFolder& folder, const Launch& launch,
                           const PrivateDaemonOptions& options);

// "culpritd" in the folder of this program, else in PATH; empty: not found.
std::string find_daemon(const Lookup& variable);

// Whether this user may read the kernel's messages.
bool may_read_kernel();

struct PrivateDaemon {
  pid_t pid = -1;
  std::string server;  // "unix:PATH"
};
// Writes the configuration and starts the daemon, which logs to <private>/culpritd.log.
Result<PrivateDaemon> start_daemon(const RunFolder& folder, const Launch& launch,
                                   const PrivateDaemonOptions& options);

// The last line of the daemon's log, for a sentence on why the daemon ended.
std::string last_daemon_words(const RunFolder& folder);

}  // namespace culprit::app
