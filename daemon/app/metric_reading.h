// Reads files of trace lines (FORMATS.md section 4: metrics, and what else the trace socket takes) into an
// engine. Of several files the one that is behind in steps is read first, so that ranks come to the same step
// together; a line of each is held at a time. Blocks, on the caller's thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "app/pipeline.h"
#include "core/engine.h"

namespace culprit::app {

// The jobs that lines at the beginning of a file name. Of a stream what recognition took is looked at.
std::set<std::string> jobs_named(const LogFile& file);

struct MetricReading {
  logs::ParseOptions parse;
  std::string job;             // lines that name another are left out; empty: all are of one job
  bool takes_nameless = true;  // lines that name none
  SourceId sources = 0;        // that the engine has: more are opened behind them
};
struct MetricsRead {
  std::vector<Problem> problems;     // what could not be read or understood
  std::set<std::string> other_jobs;  // that lines name, whose lines were left out: at most kOtherJobs
  uint64_t taken = 0;                // lines of the job that was asked for
  uint64_t nameless = 0;             // lines that name no job, and were left out
};
constexpr size_t kOtherJobs = 1000;
// Reads all files, or until progress.stop.
MetricsRead read_metrics(const std::vector<LogFile>& files, const MetricReading& reading,
                         core::Engine& engine, ReadProgress& progress);

}  // namespace culprit::app
