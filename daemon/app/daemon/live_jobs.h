// The jobs of this host while they run: an engine for each, fed with what the store gets, in the same order.
// After a restart the store's pieces are fed again and give the same engines; nothing else is kept of a job.
//
// One thread at a time calls everything here: the engine's worker. No clock, file or socket: time is an
// argument (wall clock, nanoseconds), and `options.timer` tells what a report cost. Batches are borrowed for
// the call. What happens is left as events, to be taken by poll_events().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/time.h"
#include "core/detect/pool.h"
#include "core/detect/stall.h"
#include "core/rules/ruleset.h"
#include "model/piece.h"

namespace culprit::app {

// A job of what names none.
constexpr const char* kDefaultJob = "default";

struct LiveOptions {
  std::string host;                            // this daemon's, FORMATS.md section 8 [host]
  std::vector<std::string> roots;              // fixed folders of the [[log]] globs: paths count below them
  std::shared_ptr<rules::Ruleset> rules;       // null: none
  detect::Pool pool;                           // of healthy jobs, grows with those that end well
  Zone zone;                                   // of times that name none
  detect::StallOptions hang;                   // FORMATS.md section 8 [hang]
  TimeNs ended_after_ns = 120 * kNsPerSecond;  // silence of a job without processes that is its end
  TimeNs report_every_ns = 10 * kNsPerSecond;  // where nothing hurries
  size_t jobs_max = limits::kLiveJobs;
  // Whether processes of the job are on this host; nothing where that cannot be told (asked at most once per
  // second and job, and only of silent ones).
  std::function<std::optional<bool>(const std::string& job)> alive;
  // A monotonic clock, for what a report costs; null: it costs nothing.
  std::function<TimeNs()> timer;
};

enum class LiveEventKind : uint8_t {
  kJobStarted,
  kFinding,        // json: {"job","title","rule","severity",...} as /v1/events shows it
  kDiagnosis,      // json: a DIAGNOSIS of FORMATS.md section 7; new, or changed
  kDiagnosisGone,  // json: as it was last told
  kJobEnded,       // json: {"job","well"}
  kPoolChanged,    // pool() has another job: save it
};

// The word of an event in /v1/events: "job_started", "finding", ...
std::string_view word(LiveEventKind kind);

struct LiveEvent {
  LiveEventKind kind = LiveEventKind::kFinding;
  TimeNs time_ns = kNoTime;  // of the call in which it happened
  std::string job;
  uint32_t run = 0;       // of the job, from 0: see LiveJobs
  std::string id;         // of a diagnosis: the same as long as it is the same
  std::string json;       // one object, without a newline
  bool replayed = false;  // it was told before the restart
};

enum class JobState : uint8_t { kRunning, kEndedWell, kEnded };
std::string_view word(JobState state);

struct JobSummaryLive {
  std::string id;
  uint32_t run = 0;
  JobState state = JobState::kRunning;
  std::vector<std::string> hosts;
  uint64_t ranks = 0, lines = 0, bytes = 0, sources = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;  // of what was read, wall clock
  std::optional<int64_t> iteration;
  std::optional<std::string> verdict;  // the title
  bool hangs = false;
};
std::string to_json(const JobSummaryLive& job);

struct LiveCounts {
  uint64_t lines = 0, bytes = 0;  // given to engines
  uint64_t jobs_started = 0, jobs_ended = 0;
  uint64_t jobs_forgotten = 0;      // ended ones that made room
  uint64_t pieces_refused = 0;      // of jobs beyond jobs_max running ones: evidence only
  uint64_t broken_trace_lines = 0;  // kept as evidence, not understood
  uint64_t reports = 0;
  TimeNs report_ns = 0;  // spent on them
};

// A job whose id comes again after its end is a new run of it: a new engine. Reports are of the last run; the
// earlier ones are in the index that the caller keeps of what was told at their end.
class LiveJobs {
 public:
  explicit LiveJobs(LiveOptions options);
  ~LiveJobs();

  // `now`: when the batch was read. Bytes of the pieces are not kept.
  void take(const PieceBatch& batch, TimeNs now);
  // What depends on time alone: hangs, ends, reports that are due. Call it ten times a second, and after
  // take(); cheap where nothing is due. The time at which it wants to be called at the latest.
  TimeNs tick(TimeNs now);

  // Between these, batches are the store's: times come from the pieces, and events are marked `replayed`.
  // restored() ends it: what ended meanwhile has ended.
  void restoring();
  void restored(TimeNs now);

  std::vector<LiveEvent> poll_events();

  // Of a job, ended or not; nothing for a job that is not known. The report is made anew where something
  // came since the last one.
  std::optional<std::string> report_json(const std::string& job, TimeNs now);
  std::vector<JobSummaryLive> jobs() const;  // newest first
  // {"items": [...]}, newest first; job empty: of all. Of the reports made last.
  std::string diagnoses_json(const std::string& job, TimeNs since_ns) const;
  std::string suspects_json(const std::string& job) const;
  std::string rules_json() const;

  // From now on: lines that came before are not matched again, but what was found in them stays where the
  // rule still exists with the same text.
  void reload_rules(std::shared_ptr<rules::Ruleset> rules);
  const detect::Pool& pool() const;
  const LiveCounts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::app
