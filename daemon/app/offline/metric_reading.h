// Reads files of trace lines (docs/formats.md section 4: metrics and other lines of the trace socket) into an
// engine. The file with the lowest step is read next, so all ranks reach the same step together. One line of
// each file is buffered. Blocks, on the caller's thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "app/offline/pipeline.h"
#include "core/engine.h"

namespace culprit::app {

// The jobs named in the first lines of a file. For a stream, only the bytes read for recognition are
// searched.
std::set<std::string> jobs_named(const LogFile& file);

struct MetricReading {
  logs::ParseOptions parse;
  std::string job;             // skip lines that name another job; empty: all lines belong to one job
  bool takes_nameless = true;  // include lines without a job
  SourceId sources = 0;        // sources in the engine; new sources get the next numbers
};
struct MetricsRead {
  std::vector<Problem> problems;     // unreadable or invalid lines
  std::set<std::string> other_jobs;  // jobs of skipped lines, at most kOtherJobs
  uint64_t taken = 0;                // lines of the chosen job
  uint64_t nameless = 0;             // skipped lines without a job
};
constexpr size_t kOtherJobs = 1000;
// Reads all files or until progress.stop.
MetricsRead read_metrics(const std::vector<LogFile>& files, const MetricReading& reading,
                         core::Engine& engine, ReadProgress& progress);

}  // namespace culprit::app
