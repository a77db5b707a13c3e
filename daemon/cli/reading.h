// Options and manners that all verbs share which read logs: patterns, times, zone, threads, a progress bar on
// a terminal, Ctrl-C that ends the reading and not the answer.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "app/diagnose.h"
#include "base/status.h"
#include "cli/command.h"

namespace culprit::cli {

struct ReadingOptions {
  app::DiagnoseOptions diagnose;
  std::string timezone = "UTC", since, until;
  bool quiet = false;
};

void add_reading_options(Command& verb, ReadingOptions& options);

// Turns what was typed into what the engine takes. Before other threads begin.
Status resolve(ReadingOptions& options);

// "2026-11-21", "2026-11-21T02:12", "2026-11-21 02:12:09.5", or seconds since the epoch: "@1763690000".
Result<TimeNs> parse_time(const std::string& text, const Zone& zone);

// While it lives: SIGINT and SIGTERM set progress.stop (a second one ends the program; one that was ignored
// before, as for a job in the background, stays so), and a bar is drawn on standard error where that is a
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
