// The running jobs: an engine for each, fed with stored batches in the store's order. After a restart the
// stored pieces are fed again and give the same engines; no other state of a job is kept.
//
// One thread at a time: the engine's worker. No clock, file or socket: time is an argument (wall clock,
// nanoseconds); `options.timer` measures the cost of reports. Batches are borrowed for the call. Results are
// queued as events for poll_events().
//
// A job id that returns after the job's end is a new run with a new engine for all later data. Queries of a
// job return its last run; earlier runs exist only in the events that the caller stored.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/jobs/capture_times.h"
#include "app/jobs/job_counters.h"
#include "app/jobs/live_event.h"
#include "app/jobs/normal_pools.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/detect/logs/stall.h"
#include "core/rules/run.h"
#include "model/piece.h"
#include "model/report.h"

namespace culprit::app {

struct LiveOptions {
  std::string host;                       // this daemon's name, docs/formats.md section 8 [host]
  std::optional<uint32_t> uid;            // this daemon's user, whose own messages may name hosts
  std::vector<std::string> roots;         // fixed folders of the [[log]] globs: paths are relative to them
  std::shared_ptr<rules::Ruleset> rules;  // null: none
  rules::FunctionWatch* watch = nullptr;  // borrowed: called around each call of a rule's function
  std::vector<std::string> quarantined;   // ids of rules that do not run
  std::vector<TaughtJob> taught;          // of healthy jobs that ended before; taken by LiveJobs
  std::vector<std::string> healthy;       // jobs that count as healthy even with findings
  Zone zone;                              // for times without a zone
  // Threads that parse: with 2, long texts of a queue are parsed on a second one.
  unsigned threads = 1;
  detect::StallOptions hang;                   // docs/formats.md section 8 [hang]
  CapturePlan capture;                         // of processes of a job that hangs
  TimeNs ended_after_ns = 120 * kNsPerSecond;  // end of a job without processes after this silence
  TimeNs report_every_ns = 10 * kNsPerSecond;  // interval of reports that are not urgent
  size_t jobs_max = limits::kLiveJobs;
  uint64_t memory_max = UINT64_MAX;     // of all engines: beyond it the largest job gives way
  std::set<std::string> evidence_only;  // jobs that get no engine
  // Called with the job that an engine works on next, and with "" after it. May be empty.
  std::function<void(std::string_view job)> working = {};
  // See DumpReading.
  std::function<void(std::string_view path)> reading = {};
  std::function<bool(std::string_view path)> left_out = {};
  // Whether the kernel shows processes of the job, by their control group. Empty: of no job.
  std::function<bool(const std::string& job)> shown = {};
  // The users of these processes. Empty: none is seen.
  std::function<std::set<uint32_t>(const std::string& job)> users_of = {};
  // Whether the job has processes on this host; nothing if unknown. Called at most once a second for a silent
  // job, less often for a running one. Empty: always unknown.
  std::function<std::optional<bool>(const std::string& job)> alive = {};
  // Start of the scan behind `alive` (wall clock). Empty: each answer is current.
  std::function<TimeNs()> looked_ns = {};
  // Called with each piece that a job ingests, so that `alive` knows the job's files and processes.
  std::function<void(const std::string& job, const StreamInfo&, const Piece&)> seen = {};
  // A monotonic clock that measures the cost of reports; empty: not measured.
  std::function<TimeNs()> timer = {};
};

// A run that ended before a restart, from its kJobEnded event.
struct RunEnd {
  std::string job;
  uint32_t run = 0;
  TimeNs last_ns = kNoTime;
};

struct LiveCounts {
  uint64_t lines = 0, bytes = 0;  // lines ingested by engines; bytes of all pieces
  uint64_t jobs_started = 0, jobs_ended = 0;
  uint64_t jobs_forgotten = 0;                      // ended jobs dropped to make room
  uint64_t gave_way_for_slots = 0;                  // running jobs whose engine another job got
  uint64_t gave_way_for_memory = 0;                 // running jobs whose engine took too much memory
  uint64_t engine_bytes = 0, engine_bytes_max = 0;  // memory of all engines now, and its limit
  size_t without_engine = 0;                        // jobs whose data is evidence only
  size_t waiting = 0;                               // jobs with data that is read later, or is being read
  std::vector<std::string> named_without_engine;    // a few of them
  uint64_t bytes_refused = 0;       // beyond the limits of jobs and sources: kept as evidence only
  uint64_t broken_trace_lines = 0;  // kept as evidence only
  uint64_t refused = 0;             // lines and records for jobs of another user: kept as evidence only
  uint64_t remote_blocks = 0, remote_blocks_lost = 0;  // from agents of other hosts; unreadable ones
  uint64_t remote_bytes = 0;                           // of these blocks
  std::string remote_lost_of;                          // host of the last lost block
  size_t with_verdict = 0;   // live jobs whose report has a verdict that no person refuted
  uint64_t events_lost = 0;  // findings dropped from the full queue
  uint64_t reports = 0;
  TimeNs report_ns = 0;  // cost of all reports
};

// New frames of a condensed log (core/wire/inputs.h) of another host's agent.
struct RemoteBatch {
  std::string host;
  uint64_t epoch = 0;  // of its log
  PieceBatch batch;
  size_t weight() const { return batch.bytes() + 64 * (1 + batch.pieces.size() + batch.opened.size()); }
};

class LiveJobs {
 public:
  explicit LiveJobs(LiveOptions options);
  ~LiveJobs();

  // `now`: time of the call. Data of a piece has the time at which the piece was read. `next`: the batch of
  // the next call, if it is there already; with two threads it is parsed while this one is analysed.
  void ingest(const PieceBatch& batch, TimeNs now, std::shared_ptr<const PieceBatch> next = nullptr);
  // The same for an agent of another host: each piece with bytes is a block of inputs. A job spans all hosts
  // that report it. It ends when all of them report that its processes are gone, or by silence.
  void ingest(const RemoteBatch& batch, TimeNs now);
  // The host's agent is disconnected since then (wall clock), or back (kNoTime). Its silence proves nothing.
  void agent_away(const std::string& host, TimeNs since);
  // Sentences for the log.
  std::vector<std::string> drain_notices(TimeNs now);
  // Does what depends on time alone: hangs, ends, due reports; nothing before caught_up(). Returns the time
  // of the next call, if any. Call it after ingest() and at that time; cheap if nothing is due.
  std::optional<TimeNs> tick(TimeNs now);

  // Until replayed(), ingest() gets the batches stored before the start. `ends`: the ended runs, whose pieces
  // are skipped. Events are marked `replayed`; only the latest findings are emitted, since earlier ones were
  // emitted before the restart.
  void restoring(std::span<const RunEnd> ends);
  // Later batches are new, but time has passed since the stored ones. Until caught_up(), tick() does nothing,
  // so that no job counts as silent while its lines are still queued.
  void replayed(TimeNs now);
  void caught_up(TimeNs now);

  // Jobs that were without an engine are read from the store once there are engines. begin_reading() returns
  // the jobs that got one. Then each stored source is given to open_to_read(), which returns whether it is of
  // one of these jobs, and its pieces to read(), in the store's order. end_reading() returns false while
  // pieces that have arrived meanwhile are not read: reading goes on behind the last one. `at_most` ends it.
  std::vector<std::string> begin_reading(TimeNs now);
  bool open_to_read(const StreamInfo& info);
  void read(const Piece& piece);
  bool end_reading(bool at_most);

  std::vector<LiveEvent> poll_events();

  // The report of a running or ended job; nothing for an unknown job. Made again if data arrived since the
  // last report and reports have not used up their share of the time.
  std::optional<Report> report(const std::string& job, TimeNs now);
  std::optional<uint32_t> run_of(const std::string& job) const;  // run of report()
  // Whose data it is: "user 1000", "host gpu-7"; empty: the job is not known.
  std::string owner_of_job(const std::string& job) const;
  // The user who alone writes for the job, also on other hosts: "user 1000"; empty: another, or not known.
  std::string user_of_job(const std::string& job) const;
  // The user on whose word alone the job's progress rests: no process of its control group is seen, and no
  // source is root's. Empty: not of one user alone.
  std::string whose_word(const std::string& job) const;
  // Newest first. A job without an engine is a run of its own with a note, also if an earlier run had one.
  std::vector<LiveJobSummary> jobs() const;
  std::vector<JobCounters> counters(TimeNs now) const;  // of the same jobs, by id
  // Whether the last report of the job is fully announced.
  bool settled(const std::string& job) const;
  // A person's judgement of a diagnosis. Its run may not be restored yet.
  struct Judgement {
    std::string job, id;
    uint32_t run = 0;
    bool right = true;
  };
  void judge(const Judgement& judgement, TimeNs now);
  // A person asks for the stacks of a running job: see LiveJob::order_capture.
  Result<CaptureOrder> order_capture(const std::string& job, uint32_t rounds, TimeNs now);
  std::string rules_json() const;
  // All of one rule; an error if there is none of this id.
  Result<std::string> rule_json(const std::string& id) const;

  // Applies to later data. Earlier findings stay if a rule of the same id and text exists; the next report
  // shows the change.
  void reload_rules(std::shared_ptr<rules::Ruleset> rules);
  // Other options that a reload may change, also for running jobs.
  void change(const detect::StallOptions& hang, TimeNs ended_after_ns);
  void set_capture(const CapturePlan& plan);
  // Ids of healthy jobs, for jobs that end from now on.
  void set_healthy(std::vector<std::string> jobs);
  void set_memory(uint64_t bytes_max);  // see LiveOptions::memory_max
  // A rule's function took too long: given to all engines (core::RuleOverran).
  void overran(const std::string& rule);
  size_t running() const;
  size_t remote_streams() const;
  size_t streams() const;  // streams in memory: growing ones, and ended ones of running jobs
  const NormalPools& pools() const;
  // Takes back what the runs of a job taught, also from running jobs. Returns the number of runs.
  size_t forget_taught(const std::string& job);
  const LiveCounts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::app
