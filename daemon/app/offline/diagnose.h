// An offline diagnosis: reads the files below some paths and healthy jobs for comparison, and makes one
// report. Blocks; uses up to `threads` threads.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "app/config/rule_files.h"
#include "app/offline/comm_reading.h"
#include "app/offline/pipeline.h"
#include "base/status.h"
#include "core/detect/logs/analysis.h"
#include "ingest/text_reader.h"
#include "model/report.h"

namespace culprit::app {

struct DiagnoseOptions {
  std::vector<std::string> paths;
  std::vector<std::string> healthy;  // folders or files of successful jobs, one job each
  std::string pool_file;             // pool file from build_pool; empty: none
  std::string host_pattern, rank_pattern;
  logs::ParseOptions parse;
  detect::Steps steps;
  RuleOptions rules;
  unsigned threads = 1;
  std::string job;  // selects one of several jobs in metric lines; empty: the job of job.toml, or the first
                    // one
  // Fields of one JobPaths from split_jobs(): its files, the job's id, the doubt about the split.
  std::set<std::string> only;  // empty: all
  std::string id, note;
  core::fuse::PassObserver* passes = nullptr;  // borrowed; observes the passes that make the report
};

struct Diagnosed {
  Report report;
  std::vector<Error> errors;            // unreadable arguments, healthy jobs or pool; all else was read
  bool anything = true;                 // whether any of the paths could be read
  std::vector<std::string> other_jobs;  // other jobs found in the paths that were read
};

// Recognised files of the paths; job.toml, patterns and paths name their owners.
struct JobFiles {
  JobFile job;
  std::vector<LogFile> logs;
  CommInputs comm;
  std::vector<ingest::SourceFile> ras;  // answers of NCCL's RAS
  std::vector<LogFile> metrics;         // metric lines, and other files of trace lines
  std::vector<LogFile> stacks;          // stack dumps; a path gives the host and rank that its dump lacks
  std::vector<LogFile> flights;         // Flight Recorder dumps; only the host is taken from the path
  std::vector<Problem> problems;
  std::vector<Error> errors;
  std::vector<Error> unreadable;  // arguments without any readable file
  std::set<std::string> instead;  // readable alternatives to skipped files
  uint64_t bytes = 0;             // of the files to read, on disk
};
// Reads streams as far as recognition needs, or until progress.stop. `progress` must outlive the result.
Result<JobFiles> collect_files(const std::vector<std::string>& paths, const DiagnoseOptions& options,
                               const ReadProgress& progress);

// Diagnoses one job. Fails only if no work is possible, for example on a bad pattern.
Result<Diagnosed> diagnose(const DiagnoseOptions& options, ReadProgress& progress);

// The normal pool of successful jobs. A folder without a job.toml whose subfolders have one holds several
// jobs.
struct BuiltPool {
  detect::Pool pool;
  std::vector<Problem> problems;
  std::vector<Error> errors;  // unreadable jobs; all others were read
};
Result<BuiltPool> build_pool(const std::vector<std::string>& jobs, const DiagnoseOptions& options,
                             ReadProgress& progress);

// Matches of rules by file and line, including conditions on windows.
struct RuleMatches {
  std::vector<core::RuleFired> fired;
  std::vector<Problem> problems;
  uint64_t lines = 0;
};
RuleMatches match_rules(const JobFiles& files, const PipelineOptions& options,
                        std::shared_ptr<rules::Ruleset> set, ReadProgress& progress);

// Calls back for every piece of the files, in order, on the caller's thread.
void for_each_piece(const std::vector<LogFile>& files,
                    const std::function<void(const LogFile&, const ingest::ChunkBuffer&)>& take);

// Result of only matching rules in the files, on the caller's thread: measures the cost of matching.
struct RuleScan {
  uint64_t bytes = 0, looked_at = 0, matches = 0;  // lines with a literal of a rule; matched rules
};
RuleScan scan_rules(const std::vector<LogFile>& files, const rules::Ruleset& set);

// Result of only reading the files, on the caller's thread: measures the cost of reading.
struct TextSize {
  uint64_t bytes = 0, lines = 0;
};
TextSize read_text(const std::vector<LogFile>& files);

// Thread count of a command: CULPRIT_THREADS (`setting`; null or empty: unset), else one per core.
Result<unsigned> thread_count(const char* setting);

}  // namespace culprit::app
