// The running jobs: each has an engine, fed with stored batches in the store's order. After a restart the
// stored pieces are ingested again and rebuild the same engines; no other state of a job is stored.
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
  std::optional<uint32_t> uid;            // uid of this daemon, whose own messages may name hosts
  std::vector<std::string> roots;         // fixed folders of the [[log]] globs: paths are relative to them
  std::string pods;                       // folder of pods' logs, whose host is this one; empty: none
  std::shared_ptr<rules::Ruleset> rules;  // null: none
  rules::FunctionWatch* watch = nullptr;  // borrowed: called around each call of a rule's function
  std::vector<std::string> quarantined;   // ids of rules that do not run
  std::vector<TaughtJob> taught;          // pools taught by healthy jobs that ended before; taken by LiveJobs
  std::vector<std::string> healthy;       // jobs that count as healthy even with findings
  Zone zone;                              // zone for times without one
  // Parser threads: with 2, a second thread parses long queued texts ahead.
  unsigned threads = 1;
  detect::StallOptions hang;                   // docs/formats.md section 8 [hang]
  CapturePlan capture;                         // stack captures of a hung job's processes
  TimeNs ended_after_ns = 120 * kNsPerSecond;  // a job without processes ends after this silence
  TimeNs report_every_ns = 10 * kNsPerSecond;  // interval of reports that are not urgent
  size_t jobs_max = limits::kLiveJobs;
  uint64_t memory_max = UINT64_MAX;     // limit of all engines' memory: beyond it the largest job loses its
                                        // engine
  std::set<std::string> evidence_only;  // jobs that get no engine
  // Called with the job id before an engine works on the job, and with "" afterwards. May be empty.
  std::function<void(std::string_view job)> working = {};
  // See DumpReading.
  std::function<void(std::string_view path)> reading = {};
  std::function<bool(std::string_view path)> left_out = {};
  // Whether the kernel's control groups show processes of the job. Empty: never.
  std::function<bool(const std::string& job)> shown = {};
  // Users of the job's processes in its control group. Empty: none is seen.
  std::function<std::set<uint32_t>(const std::string& job)> users_of = {};
  // Whether the job has processes on this host; nothing if unknown. Called at most once a second for a silent
  // job, less often for a running one. Empty: always unknown.
  std::function<std::optional<bool>(const std::string& job)> alive = {};
  // Start of the scan behind `alive` (wall clock). Empty: each answer is current.
  std::function<TimeNs()> looked_ns = {};
  // Called with each piece that a job ingests; tells `alive` about the job's files and processes.
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
  uint64_t gave_way_for_slots = 0;                  // running jobs that lost their engine to another job
  uint64_t gave_way_for_memory = 0;                 // running jobs that lost their engine because it took too
                                                    // much memory
  uint64_t engine_bytes = 0, engine_bytes_max = 0;  // memory of all engines now, and its limit
  size_t without_engine = 0;                        // jobs whose data is evidence only
  size_t waiting = 0;                               // jobs whose data is being read from the store, or is
                                                    // still to be read
  std::vector<std::string> named_without_engine;    // a few of them
  uint64_t bytes_refused = 0;       // bytes beyond the limits of jobs and sources: kept as evidence only
  uint64_t broken_trace_lines = 0;  // kept as evidence only
  uint64_t refused = 0;             // lines and records sent by another user than the job's owner: kept as
                                    // evidence only
  uint64_t remote_blocks = 0, remote_blocks_lost = 0;  // blocks from agents of other hosts; unreadable blocks
  uint64_t remote_bytes = 0;                           // size of these blocks
  std::string remote_lost_of;                          // host of the last lost block
  size_t with_verdict = 0;   // live jobs whose report has a verdict that no person rejected
  uint64_t events_lost = 0;  // findings dropped from the full queue
  uint64_t reports = 0;
  TimeNs report_ns = 0;  // cost of all reports
};

// New frames of a condensed log (core/wire/inputs.h) of another host's agent.
struct RemoteBatch {
  std::string host;
  uint64_t epoch = 0;  // epoch of the agent's log
  PieceBatch batch;
  // While restoring: of the lines, metrics and communication only what later blocks need is read. The reports
  // of their jobs say so and withdraw nothing.
  bool passes_over = false;
  size_t weight() const { return batch.bytes() + 64 * (1 + batch.pieces.size() + batch.opened.size()); }
};

class LiveJobs {
 public:
  explicit LiveJobs(LiveOptions options);
  ~LiveJobs();

  // `now`: time of the call. Data of a piece has the time at which the piece was read. `next`: the batch of
  // the next call, if already available; with two threads `next` is parsed during this call.
  void ingest(const PieceBatch& batch, TimeNs now, std::shared_ptr<const PieceBatch> next = nullptr);
  // The same for an agent of another host: each piece with bytes is a block of inputs. A job spans all hosts
  // that report it. It ends when all of them report that its processes are gone, or by silence.
  void ingest(const RemoteBatch& batch, TimeNs now);
  // The connection to the host's agent: lost since `since` (wall clock), or restored (kNoTime). Silence of a
  // disconnected host proves nothing.
  void agent_away(const std::string& host, TimeNs since);
  // Sentences for the log.
  std::vector<std::string> drain_notices(TimeNs now);
  // Does what depends on time alone: hangs, ends, due reports. Does nothing before caught_up(). Returns the
  // time of the next call, if any. Call it after ingest() and at that time; cheap if nothing is due.
  std::optional<TimeNs> tick(TimeNs now);

  // Until replayed(), ingest() gets the batches stored before the start. `ends`: the ended runs, whose pieces
  // are skipped. Events are marked `replayed`; only the latest findings are emitted, since earlier ones were
  // emitted before the restart. `before`: diagnoses of running jobs that an earlier process stored and did
  // not withdraw. After caught_up(), those that the jobs' reports lack are withdrawn: a kill may have
  // prevented it. May be called several times before ingest().
  void restoring(std::span<const RunEnd> ends, std::vector<Verdict> before = {});
  // Later batches are new, but time has passed since the stored ones. Until caught_up(), tick() does nothing,
  // so that no job counts as silent while its lines are still queued.
  void replayed(TimeNs now);
  // `replaces`: LiveJobs with the same input from a later time on, whose agents are away here too.
  void caught_up(TimeNs now, const LiveJobs* replaces = nullptr);
  // While restoring: the store lacks bytes of the stream, so reports may lack what came of these bytes.
  void lacks_evidence(StreamId stream);

  // Reads jobs that had no engine from the store once an engine is free. begin_reading() returns the jobs
  // that got an engine. Pass each stored source to open_to_read(), which returns whether one of these jobs
  // needs the source. Then pass the source's pieces to read(), in the store's order. end_reading() returns
  // false while pieces that arrived meanwhile are unread: continue behind the last one. `at_most` ends the
  // reading anyway.
  std::vector<std::string> begin_reading(TimeNs now);
  bool open_to_read(const StreamInfo& info);
  void read(const Piece& piece);
  bool end_reading(bool at_most);

  std::vector<LiveEvent> poll_events();

  // The report of a running or ended job; nothing for an unknown job. Rebuilt if data arrived since the last
  // report and reports have not used up their share of the time.
  std::optional<Report> report(const std::string& job, TimeNs now);
  std::optional<uint32_t> run_of(const std::string& job) const;  // run of report()
  // The owner of the job's data: "user 1000", "host gpu-7"; empty: unknown job.
  std::string owner_of_job(const std::string& job) const;
  // The only user who writes for the job, on all hosts: "user 1000"; empty: several users, or unknown.
  std::string user_of_job(const std::string& job) const;
  // The hosts whose agents report this job, and this host if the job may run here; also after its end.
  std::vector<std::string> hosts_of_job(const std::string& job) const;
  // The attempts of this run of the job; nothing: it is not known, or not one that runs again.
  struct AttemptsOfRun {
    JobAttempts attempts;
    bool running = false;
  };
  std::optional<AttemptsOfRun> attempts_of_job(const std::string& job, uint32_t run) const;
  // The user who is the only source of the job's progress: no process is seen in the job's control group, and
  // no source is root's. Empty: there are other sources.
  std::string whose_word(const std::string& job) const;
  // Newest first. A job without an engine is listed as a separate run with a note, also after an earlier run
  // with an engine.
  std::vector<LiveJobSummary> jobs() const;
  std::vector<JobCounters> counters(TimeNs now) const;  // Counters of the jobs in jobs(), by id.
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
  // One rule with all its fields; an error for an unknown id.
  Result<std::string> rule_json(const std::string& id) const;

  // Applies to later data. Earlier findings remain if a rule of the same id and text exists; the next report
  // shows the change.
  void reload_rules(std::shared_ptr<rules::Ruleset> rules);
  // Changes other reloadable options, also for running jobs. `memory_max`: see LiveOptions.
  void change(const detect::StallOptions& hang, TimeNs ended_after_ns, uint64_t memory_max);
  void set_capture(const CapturePlan& plan);
  // Sets the ids of healthy jobs, for jobs that end from now on.
  void set_healthy(std::vector<std::string> jobs);
  // Informs all engines that a rule's function took too long (core::RuleOverran).
  void overran(const std::string& rule);
  size_t running() const;
  size_t remote_streams() const;
  size_t streams() const;  // streams in memory: growing ones, and ended streams of running jobs
  NormalPools& pools();    // what is added counts from the next report on
  // Removes what a run of a job taught, or all its runs, also from running jobs. Returns the number of runs.
  size_t forget_taught(const std::string& job, std::optional<uint32_t> run = std::nullopt);
  const LiveCounts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::app
