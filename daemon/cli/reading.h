// Common options of verbs that read logs: patterns, times, zone, threads. Also a progress bar on a terminal,
// and Ctrl-C that stops the reading but still prints the result.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "app/offline/diagnose.h"
#include "base/status.h"
#include "cli/command.h"

namespace culprit::cli {

struct ReadingOptions {
  app::DiagnoseOptions diagnose;
  std::string timezone = "UTC", since, until;
  bool quiet = false;
};

void add_reading_options(Command& verb, ReadingOptions& options);

// Converts parsed arguments to the engine's options. Call before other threads start.
Status resolve(ReadingOptions& options);

// "2026-11-21", "2026-11-21T02:12", "2026-11-21 02:12:09.5", or seconds since the epoch: "@1763690000".
Result<TimeNs> parse_time(const std::string& text, const Zone& zone);

// During its lifetime, SIGINT and SIGTERM set progress.stop; a second signal ends the program. A signal that
// was ignored before, as for a background job, remains ignored. Draws a progress bar if standard error is a
// terminal.
class Watch {
 public:
  Watch(app::ReadProgress& progress, bool draw);
  ~Watch();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::cli
