// The state of one job under the controller: a table of state and evidence that gives the next state and what
// to do. The table has no memory; Facts are what the controller knows at this moment. Every pair is handled,
// every state except kRun, kHeld and kDone has a limit, and every way back to kRun begins a new attempt
// (which decide() bounds) or needs progress, a person or another actor.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "core/recover/policy.h"

namespace culprit::recover {

enum class JobState : uint8_t {
  kRun,      // the job trains, or starts without our help
  kSuspect,  // suspects or a standstill, without a verdict
  kStop,     // its processes are being ended
  kCheck,    // node checks run
  kIsolate,  // hosts are being isolated
  kPlace,    // waits until it may start again
  kRestart,  // the scheduler was asked to start it
  kVerify,   // runs again; no progress yet
  kHeld,     // stopped for a person; the controller records only
  kDone,     // ended for good
};
constexpr size_t kJobStates = static_cast<size_t>(JobState::kDone) + 1;
std::string_view to_string(JobState state);  // "run", "suspect", …

enum class JobEvidence : uint8_t {
  kVerdictEnded,     // a verdict; the processes have ended
  kVerdictAlive,     // a verdict; processes are alive
  kSuspects,         // suspects, or a standstill, without a verdict
  kProgress,         // an iteration above every earlier one, or a newer whole checkpoint
  kCompleted,        // the scheduler: ended well
  kCancelled,        // the scheduler: a person cancelled it
  kTakenAway,        // the scheduler: time limit or preemption
  kNodeFailed,       // the scheduler: a node failed
  kFailed,           // the scheduler: failed; no verdict yet
  kStartedByOthers,  // requeued or started by another actor
  kHeldByOthers,     // held by a person or an administrator
  kHostByOthers,     // a host of the job was drained, or is being changed, by another actor
  kActionsDone,      // all actions of this state have results, and all are done
  kActionsFailed,    // all have results; at least one failed or is ambiguous
  kChecked,          // all node checks answered
  kApproved,         // a person approved the decision
  kDeclined,         // a person declined it, or its question expired
  kLimit,            // the state's limit was reached
  kRestored,         // the collector has restarted, and has read the real state
};
constexpr size_t kEvidences = static_cast<size_t>(JobEvidence::kRestored) + 1;
std::string_view to_string(JobEvidence evidence);  // "verdict-ended", …

// What a decision may do now, from the mode and the stages of the partition.
enum class Permit : uint8_t {
  kObserve,  // nothing; what would be done is noted
  kAsk,      // after a person's approval
  kGranted,
};

struct Facts {
  Symptom symptom = Symptom::kOther;  // of the leading verdict
  bool stalled = false;               // no progress: a hang, with or without a culprit
  bool ends_job = false;              // the fault ends the attempt, although processes are alive
  bool sure = false;                  // confidence suffices to stop the job
  bool isolates = false;              // the treatment isolates at least one host that is not out yet
  bool checks = false;                // the treatment needs node checks first
  bool again = false;                 // decide(): one more attempt
  bool placeable = true;              // a whole checkpoint exists, as far as known
  bool waiting = false;               // place: the time to wait is not over
  bool alive = false;                 // processes of the attempt exist
  bool runs = false;                  // the scheduler reports the job as running
  bool shows_progress = true;         // the job has reported an iteration once
  bool pending = false;               // the scheduler waits for resources
  bool patient = true;                // the limit on waiting for resources is not reached
  bool frees = false;                 // an end of earlier exclusions gives it the hosts that it waits for
  bool may_restart = false;           // the stage is on
  bool breaker_open = false;          // exclusion for this job in place of isolation
  Permit permit = Permit::kObserve;
};

// What to do with a step, in this order.
enum class Do : uint32_t {
  kNothing = 0,
  kNote = 1 << 0,          // an audit sentence
  kAdvise = 1 << 1,        // advice to the job: rollback, skip, save
  kRemember = 1 << 2,      // the machine's memory: suspected
  kWouldDo = 1 << 3,       // observe: note the orders that this decision has
  kAsk = 1 << 4,           // ask: one question for the whole decision
  kDecide = 1 << 5,        // opens a decision, unless one is open
  kEndTasks = 1 << 6,      // order
  kCheckHosts = 1 << 7,    // order
  kIsolateHosts = 1 << 8,  // orders
  kExclude = 1 << 9,       // the hosts are left out for this job
  kRunAgain = 1 << 10,     // order
  kVerify = 1 << 11,       // order
  kEndAttempt = 1 << 12,   // the attempt is recorded as failed
  kGood = 1 << 13,         // the attempt is good: the decision is closed as right
  kAbandon = 1 << 14,      // open actions of the decision end: superseded
  kRemind = 1 << 15,       // a reminder
  kAskAgain = 1 << 16,     // a new decision: the order to run again without earlier exclusions
};

// A set of these.
struct DoSet {
  uint32_t bits = 0;
  constexpr DoSet() = default;
  constexpr DoSet(Do one) : bits(static_cast<uint32_t>(one)) {}  // NOLINT: one is a set of one
  constexpr bool has(Do one) const { return (bits & static_cast<uint32_t>(one)) != 0; }
  constexpr bool operator==(const DoSet&) const = default;
  friend constexpr DoSet operator|(DoSet a, DoSet b) {
    a.bits |= b.bits;
    return a;
  }
};
constexpr DoSet operator|(Do a, Do b) { return DoSet(a) | DoSet(b); }

struct Transition {
  JobState next = JobState::kRun;
  DoSet what = {};
  std::string_view why = {};  // one sentence without a full stop; static
};

Transition next(JobState state, JobEvidence evidence, const Facts& facts);

// Limits of the states, as daemon/docs/recover.md has them; "chosen" marks a number without a source.
struct Bounds {
  TimeNs suspect_ns = 600 * kNsPerSecond;
  TimeNs stop_ns = 20 * kNsPerSecond;    // capture 10 s, SIGTERM 5 s, SIGKILL
  TimeNs check_ns = 300 * kNsPerSecond;  // chosen; a check's own limit replaces it
  TimeNs isolate_ns = 30 * kNsPerSecond;
  TimeNs restart_ns = 600 * kNsPerSecond;
  TimeNs verify_min_ns = 600 * kNsPerSecond;     // or 3 times the last start
  TimeNs verdict_ns = 30 * kNsPerSecond;         // chosen: a failed job waits so long for its verdict
  TimeNs pending_ns = 24 * 3600 * kNsPerSecond;  // chosen: waits so long for resources, with a reminder
  TimeNs remind_ns = 4 * 3600 * kNsPerSecond;    // chosen: of a held or pending job
  TimeNs question_ns = 900 * kNsPerSecond;       // chosen: a question expires
};

// Time after which the state's limit is evidence; kNoTime: none. `last_start_ns`: duration of the job's last
// start, kNoTime if unknown. kPlace has the wait that decide() gave; kHeld has the reminder.
TimeNs limit_of(JobState state, const Bounds& bounds, TimeNs last_start_ns);

}  // namespace culprit::recover
