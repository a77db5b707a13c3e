// Shares the reports of jobs with the other members of the cluster, over its database: publishes those of the
// jobs that this member owns, and reads what the others published. Answers come from memory: no reader waits
// for the database.
//
// A report is published at most once in ten seconds, and only if it changed; at the end of its job at once. A
// new owner that knows less than what was published does not replace it.
//
// Thread: the loop's, also for callbacks. A worker of its own asks the database, on a connection of its own.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/recover/partition_gate.h"
#include "app/daemon/recover/published.h"
#include "io/env.h"

namespace culprit::app {

struct SharedReportsOptions {
  const Config* config = nullptr;
  std::shared_ptr<PartitionGate> gate;
  std::function<void(LogLevel, const std::string&)> log;
  // The scheduler's id of a job, which decides its partition; nothing: the scheduler has not said yet.
  std::function<std::optional<std::string>(const std::string& job)> id_of;
};

// The last run of a job as this daemon knows it.
struct OwnRun {
  std::string job;
  uint32_t run = 0;
  std::string listed;  // its item of GET /v1/jobs
  RunFacts facts;
};

struct OwnReport {
  std::string json;  // at most store::postgres::kReportBytes; empty: larger even with its lists cut
  bool cut = false;  // lists were cut
};

// What this daemon answers by itself. Each calls back once, on the loop.
struct OwnReports {
  std::function<void(std::function<void(std::vector<OwnRun>)>)> runs;  // the last one of each job
  std::function<void(const OwnRun&, std::function<void(Result<OwnReport>)>)> report;
  // The only user of the job's sources.
  std::function<void(const std::string& job, std::function<void(std::optional<uint32_t>)>)> user;
};

class SharedReports {
 public:
  static constexpr TimeNs kEachNs = 10 * kNsPerSecond;  // of a report
  static constexpr TimeNs kReadNs = 5 * kNsPerSecond;
  static constexpr TimeNs kCatchUpNs = 600 * kNsPerSecond;  // of a new owner

  // An error if the process has no thread left.
  static Result<std::unique_ptr<SharedReports>> start(io::Env& env, SharedReportsOptions options);
  ~SharedReports();

  void begin(OwnReports own);
  // Each second. `restored`: the engine has all data from before the start, so own reports are published.
  void beat(bool restored);
  // Its verdict changed, or it ended.
  void changed(const std::string& job);
  void stop() { stopped_ = true; }

  const std::string& member() const { return options_.gate->name(); }
  bool owns(const std::string& job) const { return hold_of(job).has_value(); }
  // The member that owns the job, as the database was last read; empty: none, or not known.
  std::string owner_of(const std::string& job) const;
  const PublishedReports& published() const { return published_; }
  // What another member published of the job, if that is what to answer. `own`: of the job's last run here;
  // null: there is none.
  const PublishedReport* instead_of(const std::string& job, const RunFacts* own,
                                    std::optional<uint32_t> uid) const;
  // Since when a report of this member could not be published; kNoTime: it could.
  TimeNs unpublished_since(const std::string& job) const;
  // Since when the reports of other members are not read; kNoTime: they are.
  TimeNs away_since() const { return away_since_ns_; }
  // Why reports are not published, or not read; empty: they are.
  const std::string& trouble() const { return put_error_.empty() ? read_error_ : put_error_; }

  struct Counts {  // since the start
    uint64_t published = 0, fenced = 0, failed = 0;
    uint64_t cut = 0, too_large = 0;  // lists were cut; too large all the same
    uint64_t unlisted = 0;            // not even its item of the list was published: it is too large
    uint64_t read = 0, reads_failed = 0;
  };
  const Counts& counts() const { return counts_; }
  size_t unpublished() const { return unpublished_.size(); }
  TimeNs unpublished_since() const;  // of the oldest

 private:
  struct Database;
  struct Ready;
  struct Put;
  struct Read;
  struct Given {
    uint64_t listed = 0, report = 0;  // hashes
    TimeNs at_ns = kNoTime;           // monotonic
  };
  SharedReports(io::Env& env, SharedReportsOptions options);
  std::optional<PartHold> hold_of(const std::string& job) const;
  Asking asking(const std::string& job, const PublishedReport& published) const;
  void look();
  void choose(std::vector<OwnRun> runs);
  bool is_due(const OwnRun& run) const;
  bool leaves(const OwnRun& run);
  bool is_from_here(const PublishedReport& report, const std::string& job) const;
  void publish_some();
  void add(const std::shared_ptr<Ready>& ready, const OwnRun& run);
  void note_size(const std::string& job, const OwnReport& report);
  void put_if_complete(const std::shared_ptr<Ready>& ready);
  void finish_put(const Put& put);
  void mark_unpublished(const std::string& job);
  void read();
  void finish_read(Read& read);
  void report_trouble(std::string& before, const std::string& now, const char* what);
  TimeNs mono() const { return env_.now(io::Clock::kMonotonic); }
  TimeNs wall() const { return env_.now(io::Clock::kWall); }

  io::Env& env_;
  const SharedReportsOptions options_;
  std::optional<OwnReports> own_;
  std::shared_ptr<Database> database_;  // used on the worker alone
  PublishedReports published_;
  std::map<std::string, Given> given_;         // what was published; by job
  std::map<std::string, TimeNs> unpublished_;  // since when (wall clock); by job
  std::map<std::string, TimeNs> behind_;       // since when an owned job is behind (monotonic)
  std::set<std::string> changed_;              // jobs whose report is looked at, even if listed the same
  std::deque<OwnRun> waiting_;                 // to be published in this look
  std::string put_error_, read_error_;         // reported
  TimeNs away_since_ns_ = kNoTime, looked_ns_ = kNoTime, read_ns_ = kNoTime;
  Counts counts_;
  bool looking_ = false, reading_ = false, was_read_ = false, soon_ = false, stopped_ = false;
  std::unique_ptr<io::Worker> worker_;  // destroyed first
};

}  // namespace culprit::app
