// The end of a `culprit run`: what is reported, kept and removed. Blocks; the command has ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/run/child.h"
#include "app/run/folder.h"
#include "app/run/launch.h"
#include "app/run/output_log.h"
#include "base/time.h"
#include "cli/render.h"
#include "model/report.h"

namespace culprit::cli {

struct RunChoices {
  bool keep = false;
  bool verbose = false;
  bool color = false;
  uint32_t keep_runs = 10;
};

struct EndedRun {
  const app::Launch& launch;
  app::RunFolder& folder;
  const RunChoices& choices;
  std::vector<std::string> words;  // the command
  app::CommandEnd end;
  TimeNs lasted_ns = 0;
  std::string server;                      // of the private daemon; empty: it does not run
  std::optional<std::string> live_report;  // of the last verdict while the command ran
  app::OutputLog::Counters log;            // of the copy of the output
  std::vector<std::string> log_paths;      // of the copy
  Zone zone;
  int report_to = -1;  // descriptor for the report of a failure as JSON; -1: none is asked for
};

// Prints on standard error what there is to say, and clears up. Returns the exit status of the command.
// `stop_daemon` is called once it is not needed any more.
int finish_run(const EndedRun& run, const std::function<void()>& stop_daemon);

// "`torchrun … train.py`", for sentences.
std::string quoted_command(const std::vector<std::string>& words);

}  // namespace culprit::cli
