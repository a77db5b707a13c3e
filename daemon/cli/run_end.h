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
  std::string server;                      // address of the private daemon; empty: not running
  std::optional<std::string> live_report;  // report of the last verdict while the command ran
  app::OutputLog::Counters log;            // counters of the output's copy
  std::vector<std::string> log_paths;      // files of the output's copy
  Zone zone;
  int report_to = -1;  // descriptor for the report of a failure as JSON; -1: no report requested
};

// Prints the outcome on standard error and cleans up. Returns the exit status of the command. Calls
// `stop_daemon` once the daemon is not needed any more.
int finish_run(const EndedRun& run, const std::function<void()>& stop_daemon);

// "`torchrun … train.py`", for sentences.
std::string quoted_command(const std::vector<std::string>& words);

}  // namespace culprit::cli
