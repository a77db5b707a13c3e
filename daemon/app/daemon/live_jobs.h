// The jobs of this host while they run: an engine for each, fed with what the store gets, in the same order.
// After a restart the store's pieces are fed again and give the same engines; nothing else is kept of a job.
//
// One thread at a time calls everything here: the engine's worker. No clock, file or socket: time is an
// argument (wall clock, nanoseconds), and `options.timer` tells what a report cost. Batches are borrowed for
// the call. What happens is left as events, to be taken by poll_events().
//
// A job whose id comes again after its end is a new run of it: a new engine, which takes what comes from then
// on. Of a job the last run is answered for; the earlier ones are what the caller kept of their events.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/time.h"
#include "core/detect/pool.h"
#include "core/detect/stall.h"
#include "core/rules/run.h"
#include "model/piece.h"
#include "model/report_json.h"

namespace culprit::app {

struct LiveOptions {
  std::string host;                            // this daemon's, FORMATS.md section 8 [host]
  std::optional<uint32_t> uid;                 // this daemon's: what it sends itself may name hosts
  std::vector<std::string> roots;              // fixed folders of the [[log]] globs: paths count below them
  std::shared_ptr<rules::Ruleset> rules;       // null: none
  rules::FunctionWatch* watch = nullptr;       // borrowed: round each call of a rule's function
  std::vector<std::string> quarantined;        // ids of rules that are not evaluated
  detect::Pool pool;                           // of healthy jobs, grows with those that end well
  std::vector<std::string> healthy;            // jobs that count as such, whatever is said of them
  Zone zone;                                   // of times that name none
  detect::StallOptions hang;                   // FORMATS.md section 8 [hang]
  TimeNs ended_after_ns = 120 * kNsPerSecond;  // silence of a job without processes that is its end
  TimeNs report_every_ns = 10 * kNsPerSecond;  // where nothing hurries
  size_t jobs_max = limits::kLiveJobs;
  // Whether processes of the job are on this host; nothing where that cannot be told. Asked at most once a
  // second for a silent job, and now and then while it runs. Empty: it can never be told.
  std::function<std::optional<bool>(const std::string& job)> alive = {};
  // When the look began that `alive` answers from (wall clock). Empty: each answer is current.
  std::function<TimeNs()> looked_ns = {};
  // Told of each piece that a job takes, so that `alive` knows whose files and processes to look for.
  std::function<void(const std::string& job, const StreamInfo&, const Piece&)> seen = {};
  // A monotonic clock, for what a report costs; empty: nothing.
  std::function<TimeNs()> timer = {};
};

enum class LiveEventKind : uint8_t {
  kJobStarted,  // json: LiveJobSummary
  kFinding,     // json: {"job","run","time_ns","rule","title",…,"host","file","line","text","repeated"}
  // json: a DIAGNOSIS of FORMATS.md section 7, with "job", "run", "verdict", "settled", "change" (new,
  // revised, withdrawn), "replaces" (the verdict whose place it takes: "id", "title"; else null) and
  // "accused_ns" (by host: when the newest evidence against it came)
  kDiagnosis,
  kDiagnosisGone,  // the same, as it was emitted last
  kJobEnded,       // json: LiveJobSummary; `report` is the final one
  kPoolChanged,    // pool() has another job: save it
  kStepsWanted,    // the agents of `hosts` are to be asked for records of `steps`; never replayed
};
// As in /v1/events: "job_started", "finding", "diagnosis", "diagnosis_gone", "job_ended", "pool_changed"; the
// last one is no news.
std::string_view word(LiveEventKind kind);

enum class JobState : uint8_t { kRunning, kEnded, kFailed };
std::string_view word(JobState state);  // "running", "ended", "failed"

struct LiveJobSummary {
  std::string id;
  uint32_t run = 0;
  JobState state = JobState::kRunning;
  bool well = false;  // it reached its planned end, and nothing failed
  bool hangs = false;
  uint64_t hosts = 0, ranks = 0, sources = 0;  // as the last report saw them; sources: now
  uint64_t lines = 0, bytes = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;  // when its bytes were read
  std::optional<int64_t> iteration;
  std::optional<std::string> verdict;  // its title
};
std::string to_json(const LiveJobSummary& job);

struct LiveEvent {
  LiveEventKind kind = LiveEventKind::kFinding;
  TimeNs time_ns = kNoTime;  // of the call in which it happened
  std::string job;
  uint32_t run = 0;
  std::string id;  // of a diagnosis or finding: alike for as long as the run lasts, also over restarts
  std::string json;
  bool publish = true;                    // of a diagnosis: false where it is only stored so far
  std::string sentence;                   // of a diagnosis that is the verdict: for people
  std::string report;                     // of kJobEnded: FORMATS.md section 7, with charts
  std::optional<LiveJobSummary> summary;  // of kJobStarted and kJobEnded
  TimeNs last_ns = kNoTime;               // of kJobEnded: what came later is another run's; see RunEnd
  std::vector<std::string> hosts;         // of a finding or a diagnosis: whose agents told of it
  std::vector<int64_t> steps = {};        // of kStepsWanted
  // Of a diagnosis that they corrupt data: by UUID or serial number where known, and where each is.
  struct Device {
    std::string name, host;
  };
  std::vector<Device> devices;
  std::optional<int64_t> step;  // of a diagnosis
  TimeNs told_ns = kNoTime;     // up to when the job was known then, on the clock of its hosts
  bool replayed = false;        // it may have been told before a restart
};

// A run that ended before a restart, as its kJobEnded told.
struct RunEnd {
  std::string job;
  uint32_t run = 0;
  TimeNs last_ns = kNoTime;
};

struct LiveCounts {
  uint64_t lines = 0, bytes = 0;  // that engines took; bytes of all pieces
  uint64_t jobs_started = 0, jobs_ended = 0;
  uint64_t jobs_forgotten = 0;                         // ended ones that made room
  uint64_t bytes_refused = 0;                          // of jobs and sources beyond the bounds: evidence only
  uint64_t broken_trace_lines = 0;                     // evidence only
  uint64_t remote_blocks = 0, remote_blocks_lost = 0;  // of other hosts' agents; that cannot be read
  uint64_t remote_bytes = 0;                           // of these blocks
  std::string remote_lost_of;                          // the host of the last one lost
  uint64_t events_lost = 0;                            // findings that nobody took in time
  uint64_t reports = 0;
  TimeNs report_ns = 0;  // spent on them
};

// What was new of a log of condensed inputs that another host's agent sent (core/wire.h).
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

  // `now`: when it is taken; what is told of a piece is as of when it was read.
  void take(const PieceBatch& batch, TimeNs now);
  // The same of an agent on another host: a block of inputs for each piece that has bytes. Jobs run over all
  // hosts that speak of them; one is over when all of these say that its processes are gone, or by silence.
  void take(const RemoteBatch& batch, TimeNs now);
  // The agent of a host is away since then (wall clock), or back (kNoTime): its silence says nothing.
  void agent_away(const std::string& host, TimeNs since);
  // What depends on time alone: hangs, ends, reports that are due; nothing before caught_up(). Call it after
  // take() and at the latest at the time that it gives, if any; cheap where nothing is due.
  std::optional<TimeNs> tick(TimeNs now);

  // From here to replayed(), take() gets what the store had at the start. `ends`: the runs that are over
  // already; their pieces are passed over. What is told then is marked `replayed`; of the findings the last
  // ones are, since those before were told long ago.
  void restoring(std::span<const RunEnd> ends);
  // From here on what is taken is news, but time has gone on meanwhile: until caught_up(), tick() does
  // nothing, so that no job seems silent whose lines are still to be taken.
  void replayed(TimeNs now);
  void caught_up(TimeNs now);

  std::vector<LiveEvent> poll_events();

  // Of a job, running or ended; nothing for one that is not known. Made anew where something came since the
  // last one and reports have not taken their share of the time.
  std::optional<std::string> report_json(const std::string& job, TimeNs now, Charts = Charts::kLeftOut);
  std::optional<uint32_t> run_of(const std::string& job) const;  // that report_json() is of
  std::vector<LiveJobSummary> jobs() const;                      // newest first
  // Whether the last report of the job was announced as it is.
  bool settled(const std::string& job) const;
  // A person's judgement of a diagnosis. Its run may still have to be restored.
  struct Judgement {
    std::string job, id;
    uint32_t run = 0;
    bool right = true;
  };
  void judge(const Judgement& judgement, TimeNs now);
  std::string rules_json() const;

  // For what comes from now on. What was found stays where a rule of the same id and text is there; the next
  // report tells.
  void reload_rules(std::shared_ptr<rules::Ruleset> rules);
  // What a reload may change beside, for running jobs too.
  void change(const detect::StallOptions& hang, TimeNs ended_after_ns);
  // Names of jobs that are to be learned from, for those that end from now on.
  void set_healthy(std::vector<std::string> jobs);
  // A rule's function took too long: told to all engines (core::RuleOverran).
  void overran(const std::string& rule);
  size_t running() const;
  size_t remote_streams() const;
  size_t streams() const;  // that are remembered: those that may go on, and ended ones of running jobs
  const detect::Pool& pool() const;
  const LiveCounts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::app
