// The culpritd of one run: its configuration, and its process. It has no part in the job's process group, a
// lower priority, and ends with us, however we end. One thread.
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
  bool kernel = false;     // its messages may be read
};

// The text of its culpritd.toml. Pure.
std::string private_config(const RunFolder& folder, const Launch& launch,
                           const PrivateDaemonOptions& options);

// "culpritd" in the folder of this program, else in PATH; empty: there is none.
std::string find_daemon(const Lookup& variable);

// Whether this user may read the kernel's messages.
bool may_read_kernel();

struct PrivateDaemon {
  pid_t pid = -1;
  std::string server;  // "unix:PATH"
};
// Writes the configuration and starts it. Its log is <private>/culpritd.log.
Result<PrivateDaemon> start_daemon(const RunFolder& folder, const Launch& launch,
                                   const PrivateDaemonOptions& options);

// The last line of the daemon's log, for a sentence on why it ended.
std::string last_daemon_words(const RunFolder& folder);

}  // namespace culprit::app
