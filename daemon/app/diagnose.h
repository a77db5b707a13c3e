// An offline diagnosis: the files below some paths, the healthy jobs to compare with, one report. Blocks;
// uses up to `threads` threads.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "app/pipeline.h"
#include "app/rules.h"
#include "base/status.h"
#include "core/detect/analysis.h"
#include "model/report.h"

namespace culprit::app {

struct DiagnoseOptions {
  std::vector<std::string> paths;
  std::vector<std::string> healthy;  // folders or files of successful jobs, one job each
  std::string pool_file;             // saved by build_pool; empty: none
  std::string host_pattern, rank_pattern;
  logs::ParseOptions parse;
  detect::Steps steps;
  RuleOptions rules;
  unsigned threads = 1;
  std::string job;  // of several that lines of metrics name, this one; empty: job.toml's, or the first
  // Of one JobPaths of split_jobs(): its files, the job's id, the doubt about it.
  std::set<std::string> only;  // empty: all
  std::string id, note;
};

struct Diagnosed {
  Report report;
  std::vector<Error> errors;  // arguments, healthy jobs, the pool: what could not be read; the rest was
  bool anything = true;       // whether one of the paths could be read
  std::vector<std::string> other_jobs;  // that the paths name too, as far as they were read for this one
};

// Files of the paths, recognised, with their owners told by job.toml, patterns and paths.
struct JobFiles {
  JobFile job;
  std::vector<LogFile> logs;
  std::vector<ingest::SourceFile> comm;
  std::vector<LogFile> metrics;  // and what else is lines of traces
  std::vector<LogFile> flights;  // Flight Recorder dumps; of what their paths tell the host counts
  std::vector<Problem> problems;
  std::vector<Error> errors;
  std::vector<Error> unreadable;  // arguments that hold files, and none that can be read
  std::set<std::string> instead;  // what could be read in place of the files passed over
  uint64_t bytes = 0;             // of those to read, on disk
};
// Streams among them are read as far as recognition needs, or until progress.stop; `progress` must outlive
// what comes back.
Result<JobFiles> collect_files(const std::vector<std::string>& paths, const DiagnoseOptions& options,
                               const ReadProgress& progress);

// One job. Fails only where nothing at all could be done: a bad pattern.
Result<Diagnosed> diagnose(const DiagnoseOptions& options, ReadProgress& progress);

// The normal pool of successful jobs. A folder without a job.toml whose subfolders have one holds several
// jobs.
struct BuiltPool {
  detect::Pool pool;
  std::vector<Problem> problems;
  std::vector<Error> errors;  // jobs that could not be read; the rest was
};
Result<BuiltPool> build_pool(const std::vector<std::string>& jobs, const DiagnoseOptions& options,
                             ReadProgress& progress);

// Which rules fire where: by file and line, windows and all.
struct RuleMatches {
  std::vector<core::RuleFired> fired;
  std::vector<Problem> problems;
  uint64_t lines = 0;
};
RuleMatches match_rules(const JobFiles& files, const PipelineOptions& options,
                        std::shared_ptr<rules::Ruleset> set, ReadProgress& progress);

// Looks for the rules in the files and does nothing else, on this thread: what matching alone costs.
struct RuleScan {
  uint64_t bytes = 0, looked_at = 0, matches = 0;  // lines in which a literal stands, rules found in them
};
RuleScan scan_rules(const std::vector<LogFile>& files, const rules::Ruleset& set);

// Reads the files and does nothing with them, on this thread: what reading alone costs.
struct TextSize {
  uint64_t bytes = 0, lines = 0;
};
TextSize read_text(const std::vector<LogFile>& files);

// Threads of a command: CULPRIT_THREADS (`setting`; null or empty: none), else one for each core.
Result<unsigned> thread_count(const char* setting);

}  // namespace culprit::app
