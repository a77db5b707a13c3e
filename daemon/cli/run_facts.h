// Facts about one run for `culprit diff`: its report, progress, hosts, versions and settings. Blocks.
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
  std::string name;  // name as on the command line
  Report report;
  ProgressPoints progress;
  std::set<std::string> hosts;
  bool knows_hosts = false;                                         // false: the report has only the number
                                                                    // of hosts
  std::map<std::string, std::set<std::string>> versions, settings;  // by name
  bool has_logs = false;
};

// Number of messages per template in two runs with common templates.
struct MessageCount {
  std::string text;
  uint64_t before = 0, after = 0;
};

struct TwoRuns {
  RunFacts before, after;
  std::vector<MessageCount> messages;  // empty unless logs of both are readable here
  std::vector<Error> errors;           // unreadable inputs; all others were read
};

// A run is a folder or file, a report NAME.json, or JOB or JOB@RUN of a daemon.
Result<TwoRuns> read_two_runs(const std::string& before, const std::string& after,
                              const app::DiagnoseOptions& options, const app::ClientOptions& client);

// Adds versions ("nccl", "driver") and settings ("NCCL_ALGO") stated in a log line.
void add_stated(std::string_view line, RunFacts& facts);

}  // namespace culprit::cli
