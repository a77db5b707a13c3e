// Events of live jobs: changes of jobs, findings, diagnoses and reports, as values. They become JSON where
// they are stored or served.
//
// Thread: made on the engine's worker, then owned by the reader.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/jobs/announcer.h"
#include "app/jobs/job_attempts.h"
#include "app/jobs/normal_pools.h"
#include "base/time.h"
#include "core/detect/logs/save_watch.h"
#include "model/finding.h"
#include "model/peer.h"
#include "model/report.h"

namespace culprit::app {

enum class LiveEventKind : uint8_t {
  kJobStarted,          // content: JobChange
  kFinding,             // content: FindingChange
  kDiagnosis,           // content: DiagnosisChange
  kDiagnosisWithdrawn,  // content: the diagnosis as last emitted
  kJobEnded,            // content: JobChange with the final report
  kPoolChanged,         // content: PoolChange
  kStepsWanted,         // request for records of `steps` to the agents of `hosts`; never replayed
  kStacksWanted,  // request for stacks to the agents of `hosts`, and of this host if `here`; never replayed
};
// As in /v1/events: "job_started", "finding", "diagnosis", "diagnosis_gone", "job_ended", "pool_changed".
// Subscribers never get the last three.
std::string_view to_string(LiveEventKind kind);

enum class JobState : uint8_t { kRunning, kEnded, kFailed };
std::string_view to_string(JobState state);  // "running", "ended", "failed"

struct LiveJobSummary {
  std::string id;
  uint32_t run = 0;
  JobState state = JobState::kRunning;
  bool well = false;  // the job completed as planned without a failure
  bool hangs = false;
  Conclusion conclusion = Conclusion::kCannotTell;  // conclusion of the last report
  std::string headline;                             // headline of the last report
  uint64_t hosts = 0, ranks = 0, sources = 0;       // hosts and ranks as of the last report; sources as of
                                                    // now
  uint64_t lines = 0, bytes = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;  // times at which the first and last bytes were read
  std::optional<int64_t> iteration;
  std::optional<detect::SaveWatch::Saved> saved;  // its newest checkpoint that the job reported as written
  std::vector<AdviceSummary> advice;              // what its loop did with advice, by id
  std::optional<std::string> verdict;             // title of the verdict
  bool has_engine = true;               // false: the data is evidence only, and the other fields are unknown
  std::optional<std::string> note;      // why the job has no engine, or lost its engine
  std::optional<JobAttempts> attempts;  // of a job that runs again
};
std::string to_json(const LiveJobSummary& job);

// Result of a person's request for stacks.
struct CaptureOrder {
  uint32_t run = 0;
  uint32_t sample = 0;  // number of the first capture; later captures count up from it
  uint32_t rounds = 0;
  TimeNs every_ns = 0;  // between two
  TimeNs asked_ns = kNoTime;
  std::vector<std::string> hosts;  // hosts of other agents
  bool here = false;               // whether this host is included
};

struct JobChange {
  LiveJobSummary summary;
  std::shared_ptr<const Report> report;  // null while the job runs
};

struct FindingChange {
  Finding finding;
  uint64_t repeated = 0;  // repetitions since the last event of the rule and host
};

struct DiagnosisChange {
  Announcement announcement;
  std::optional<Diagnosis> diagnosis;  // kDiagnosisWithdrawn: the diagnosis as last emitted, if any
  AccusedTimes accused_ns;
};

// A healthy job taught its owner's pool, and the listed older runs were dropped from the pool.
struct PoolChange {
  TaughtJob taught;
  std::vector<NormalPools::Run> removed;
};

struct LiveEvent {
  LiveEventKind kind = LiveEventKind::kFinding;
  TimeNs time_ns = kNoTime;  // time of the call that made the event
  std::string job;
  uint32_t run = 0;
  std::string id;  // id of a diagnosis or finding: constant during the run, also across restarts
  std::variant<std::monostate, JobChange, FindingChange, DiagnosisChange, std::shared_ptr<const PoolChange>>
      content;
  bool publish = true;              // false: the diagnosis is only stored so far
  std::string sentence;             // sentence for readers, if the diagnosis is the verdict
  TimeNs last_ns = kNoTime;         // kJobEnded: later data belongs to another run; see RunEnd
  std::vector<std::string> hosts;   // of a finding or a diagnosis: hosts whose agents reported it
  std::vector<int64_t> steps = {};  // kStepsWanted: requested steps
  peer::StacksWanted stacks = {};   // kStacksWanted: requested stacks
  bool here = false;                // of kStacksWanted: the job runs on this host too
  // Devices that the diagnosis accuses of data corruption: UUID or serial number if known, and location.
  struct Device {
    std::string name, host;
  };
  std::vector<Device> devices;
  std::optional<int64_t> step;      // step of a diagnosis
  TimeNs known_until_ns = kNoTime;  // watermark of the job at the event, on the clock of its hosts
  bool replayed = false;            // possibly emitted before a restart
};

// The event's diagnosis as a verdict, as of the event.
Verdict verdict_of(const LiveEvent& event, const DiagnosisChange& change);

// The data of the event in /v1/events (formats.md section 9): a summary, a finding, or a diagnosis in the
// form of model/verdict.h. Empty if the event has no content.
std::string to_json(const LiveEvent& event);

}  // namespace culprit::app
