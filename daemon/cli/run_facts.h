// What is known of one run for `culprit diff`: its report, progress, hosts, versions and settings. Blocks.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/client.h"
#include "app/offline/diagnose.h"
#include "base/status.h"
#include "cli/speed.h"
#include "model/report.h"

namespace culprit::cli {

struct RunFacts {
  std::string name;  // as the command line has it
  Report report;
  ProgressPoints progress;
  std::set<std::string> hosts;
  bool knows_hosts = false;                                         // a report alone has only their number
  std::map<std::string, std::set<std::string>> versions, settings;  // by name
  bool has_logs = false;
};

// Messages of two runs that were read into the same templates.
struct MessageCount {
  std::string text;
  uint64_t before = 0, after = 0;
};

struct TwoRuns {
  RunFacts before, after;
  std::vector<MessageCount> messages;  // empty unless both have logs here
  std::vector<Error> errors;           // of what could not be read; the rest was
};

// A run is a folder or file, a report NAME.json, or JOB or JOB@RUN of a daemon.
Result<TwoRuns> read_two_runs(const std::string& before, const std::string& after,
                              const app::DiagnoseOptions& options, const app::ClientOptions& client);

// Adds versions ("nccl", "driver") and settings ("NCCL_ALGO") that a line of a log states.
void add_stated(std::string_view line, RunFacts& facts);

}  // namespace culprit::cli
