// The end of a `culprit run`: what is reported, kept and removed. Blocks; the command has ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/run/child.h"
#include "app/run/folder.h"
#include "app/run/held_folder.h"
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
  // Of an attempt on several hosts: the requester looks at all hosts, and prints.
  bool is_part = false;
};

// Prints the outcome on standard error and cleans up. Returns the exit status of the command. Calls
// `stop_daemon` once the daemon is not needed any more.
int finish_run(const EndedRun& run, const std::function<void()>& stop_daemon);

// The report of a run's inputs, from its files. `exposed`: by descriptor, since paths may lead elsewhere.
std::optional<Report> report_of_inputs(const app::HeldFolder& inputs, bool exposed, const Zone& zone);
// Prefers the report from files, which can be repeated, unless the daemon knows more. `spans_hosts`: the
// command's output has lines of several hosts, which the daemon takes for this host's.
std::optional<Report> better_report(std::optional<Report> live, std::optional<Report> files,
                                    bool spans_hosts);
// Prints a report on standard error, and writes its page and JSON into the run's folder.
void show_report(const Report& report, const RunChoices& choices, const Zone& zone,
                 const app::HeldFolder& run);

// Writes the report as JSON. A reader that is away, or a full descriptor, gets a part.
void hand_over_report(int fd, const Report& report);

// "`torchrun … train.py`", for sentences.
std::string quoted_command(const std::vector<std::string>& words);

}  // namespace culprit::cli
