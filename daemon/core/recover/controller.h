// The controller: for all jobs, inputs and a time give orders. Equal inputs in equal order give equal orders;
// there is no clock, chance or memory outside. The engine or collector calls step() on one thread, stores
// what drain_*() returns, syncs, and only then carries out the orders; results come back as inputs.
//
// observe: orders are never emitted; notes say what would have been done. ask: one question per decision, and
// orders after its approval. act: orders, where the stages of the partition are on.
//
// A job is its scheduler's id with the time of submission or the UID: a later job with the same id is another
// one. One decision per job and one action per host are open at a time. Without inputs nothing happens: if
// the collector, the database or the lease is away, jobs go on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "core/recover/actions.h"
#include "core/recover/decide.h"
#include "core/recover/guard.h"
#include "core/recover/job_state.h"
#include "core/recover/policy.h"
#include "model/advice.h"
#include "model/recovery.h"
#include "model/recovery_ledger.h"
#include "model/report.h"

namespace culprit::recover {

struct ControllerOptions {
  Policy policy;
  GuardOptions guard;
  Bounds bounds;
  // Of attempts (decide.h). A job on a thousand hosts meets a dozen faults a day that are not its own: 20
  // attempts a day held it for a person (chosen by the sweep in docs/simulated-cluster.md).
  Limits limits = {.retries = 3, .attempts_per_day = 200};
  // A storm is the larger of limits.storm and one failure for so many hosts of the job (chosen by the
  // simulation of 12,500 hosts).
  uint32_t storm_hosts = 1000;
  Origins origins;
  bool advise = false;                    // jobs get advice, by the mode
  TimeNs advice_ns = 600 * kNsPerSecond;  // chosen: it is not taken later
};

// ---- inputs. Times are arguments: `now` of step() is the time of all its inputs.

// The identity of a job: "slurm/4711@1700000000000000000", "kubernetes/ns/name@uid".
std::string key_of(const ScheduledJob& job);

struct ClusterSeen {
  uint32_t hosts = 0;  // that can run jobs, isolated ones included
};
// An attempt runs, started by whomever. `job.restarts` is the attempt's.
struct AttemptStarted {
  ScheduledJob job;
  std::vector<std::string> hosts;
  std::string partition;
  std::optional<int64_t> from_iteration;  // resumed from
  std::string checkpoint;                 // resumed from; empty: unknown
};
// What the environment can give to the job. Any number of times; the latest counts. Without one, the
// scheduler may start the job elsewhere.
struct JobMeans {
  ScheduledJob job;
  Means means;                       // may_requeue false: the job cannot be started again by us
  std::optional<uint32_t> eligible;  // hosts up, not isolated, not excluded for this job; nullopt: unknown
  uint32_t needed = 0;               // hosts of an attempt; 0: as the last one
  std::optional<bool> checkpoint;    // a whole checkpoint exists; nullopt: unknown
  bool pending = false;              // the scheduler waits for resources
  std::string pending_reason;        // the scheduler's word: "Resources", "Priority"
};
// The leading diagnosis of the running attempt, at its beginning and at each revision.
struct VerdictSeen {
  ScheduledJob job;
  Diagnosis diagnosis;
  bool alive = false;      // processes of the attempt exist
  bool settled = true;     // false: the diagnosis may still change; an ended job waits for a better one
  Authors also;            // who else states it, as the caller knows
  uint32_t measured = 1;   // times that the fault was measured
  double step_share = 0;   // of a slow part: its cost, 0..1
  bool withdrawn = false;  // the diagnosis is withdrawn: it counts as refuted
};
// Suspects or a standstill, without a verdict.
struct SuspectsSeen {
  ScheduledJob job;
  std::vector<std::string> hosts;
  bool stalled = false;
  std::string why;
};
struct ProgressSeen {
  ScheduledJob job;
  int64_t iteration = 0;
  bool saved = false;  // a whole checkpoint of this iteration is on disk
};
enum class JobEnd : uint8_t { kCompleted, kCancelled, kTimeLimit, kPreempted, kNodeFailed, kFailed };
struct AttemptEnded {
  ScheduledJob job;
  JobEnd end = JobEnd::kFailed;
  std::vector<std::string> failed_hosts;                   // kNodeFailed: those that the scheduler names
  std::string word;                                        // the scheduler's: "NODE_FAIL"
  std::optional<std::string> exit_code = {}, reason = {};  // "1:0", code and signal; "NonZeroExitCode"
};
enum class ForeignKind : uint8_t { kStarted, kHeld, kReleased };
struct JobChanged {  // by another actor
  ScheduledJob job;
  ForeignKind kind = ForeignKind::kStarted;
  std::string by;
};
// The real state of a host, each minute and at each change: memory is reconciled with it.
struct HostSeen {
  std::string host;
  bool out = false;  // takes no new work
  std::string op;    // our mark on it; empty: none
  std::string by;    // who put it out, or returned it; empty: unknown
  std::string partition;
  // When the reading began; kNoTime: now. A reading from before the isolation is no news.
  TimeNs read_ns = kNoTime;
  TimeNs boot_ns = kNoTime;  // its last boot, as the scheduler shows it; kNoTime: unknown
};
// A person says that a host is mended (`culprit clear HOST`): one that we isolated is returned, without a
// veto.
struct HostRepaired {
  std::string host;
  std::string by;
};
enum class CheckAnswer : uint8_t { kPassed, kFailed, kNoAnswer };
enum class CheckKind : uint8_t {
  kHost,   // each host by itself
  kAlign,  // an equal step on all hosts of a job, compared with each other
};
// A node check's result, asked for or not.
struct HostChecked {
  std::string host;
  CheckAnswer answer = CheckAnswer::kNoAnswer;
  std::string why;
  bool spare = false;  // of a spare host in its pool: a failed one is isolated
  CheckKind kind = CheckKind::kHost;
};
// A person's answer to a question.
struct Approval {
  std::string decision;
  bool approved = false;
  std::string by;
};
struct BreakerReset {
  std::string by;
  TimeNs at_ns = kNoTime;  // kNoTime: now; after a restart the stored time of the last reset
};
// A person undoes an isolation of ours (`culprit recover undo`): returned, and a veto for the cause.
struct Undo {
  std::string op;
  std::string by;
};
// Once, after all load() and before other inputs: what was read of the reserved actions.
struct Restored {
  std::vector<ReadBack> read;
};
// Isolations, machines and resets of other members, where several collectors share their jobs: the breaker
// counts their isolations, and a veto there holds here. Rows may come more than once.
struct LedgerSeen {
  std::vector<ActionRecord> isolations;
  std::vector<MachineRecord> machines;
};
// A job that this member gained, with what the member before knew of it: it goes on from there. What had been
// ordered and has no result is not done again.
struct JobAdopted {
  ScheduledJob job;  // with the identity of the rows
  std::vector<AttemptRecord> attempts;
  std::vector<ActionRecord> actions;
};
// Ranks of the job reported what became of advice, ours or a person's.
struct AdviceSeen {
  ScheduledJob job;
  uint64_t id = 0;
  AdviceKind kind = AdviceKind::kSaveNow;
  AdviceOutcome outcome = AdviceOutcome::kTaken;
  uint32_t ranks = 0;
  int64_t step = -1;  // -1: unknown
  std::string why;    // of a refusal
};
// Time alone.
struct Tick {};

using Input =
    std::variant<ControllerOptions, ClusterSeen, AttemptStarted, JobMeans, VerdictSeen, SuspectsSeen,
                 ProgressSeen, AttemptEnded, JobChanged, HostSeen, HostChecked, ActionResult, Approval,
                 BreakerReset, Undo, Restored, Tick, HostRepaired, AdviceSeen, LedgerSeen, JobAdopted>;

// ---- orders

// Checks on hosts; each answer comes back as HostChecked.
struct CheckOrder {
  std::string decision;
  std::string job;  // key; empty: no job waits for it: the return, or the isolation, of a host that is out
  std::vector<std::string> hosts;
  std::string why;
  TimeNs until_ns = kNoTime;
  CheckKind kind = CheckKind::kHost;
};
// One for a whole decision. The button, the link in the alert and `culprit recover approve` answer it.
struct Question {
  std::string decision;
  std::string job;                  // key
  std::string text;                 // one sentence: what would be done, and why
  std::vector<ActionOrder> orders;  // what an approval permits; `op` is filled in
  TimeNs expires_ns = kNoTime;
  bool advises = false;  // about advice: `text` says what, and there are no orders
};
enum class NoteKind : uint8_t {
  kDecided,  // what was decided, and why
  kWouldDo,  // observe: `order` would have been given
  kRefused,  // a guard rail refused
  kResult,   // what came of an action
  kHeld,     // the job waits for a person: what is missing
  kAdvice,   // for the job: rollback, skip, save at the next step
  kReminder,
  kRecord,  // anything else for the audit
};
std::string_view to_string(NoteKind kind);  // "decided", "would-do", …
struct Note {
  NoteKind kind = NoteKind::kRecord;
  std::string job;       // key; may be empty
  std::string decision;  // may be empty
  std::string text;      // one sentence without a full stop
  std::optional<ActionOrder> order;
};
// Advice to the loop of a job, by the agents of its hosts. It changes nothing by itself, so it has no row in
// the ledger; what the loop did comes back as AdviceSeen.
struct AdviceOrder {
  std::string decision;  // "advice-1764489600000"
  ScheduledJob job;
  Advice advice;
  std::string why;  // one sentence without a full stop
};
using Order = std::variant<ActionOrder, CheckOrder, Question, Note, AdviceOrder>;

// The state of one job, for pages, `GET /v1/jobs/J/decision` and the command line.
struct JobView {
  std::string key;
  ScheduledJob job;
  JobState state = JobState::kRun;
  TimeNs since_ns = kNoTime;  // in this state
  TimeNs limit_ns = kNoTime;  // when the state's limit is reached
  uint32_t attempt = 0;       // from 1
  std::string decision;       // the open or the latest one
  std::string root, why;
  FaultClass fault = FaultClass::kUnknown;
  Machine machine = Machine::kNone;
  RestartAdvice advice;  // of the latest verdict
  bool asks = false;     // a question is open
  std::vector<std::string> hosts, excluded;
  bool ended = false;  // the attempt
};

class Controller {
 public:
  explicit Controller(ControllerOptions options = {});
  ~Controller();
  Controller(Controller&&) noexcept;

  // Before the first step: rows as stored. The first number of decisions follows from them. False: the row
  // contradicts itself, and the caller must not start (an unreadable ledger is not an empty one).
  bool load(ActionRecord record);
  bool load(AttemptRecord record);
  void load(MachineRecord record);
  // The ledger was lost: the marks of its decisions may still be on hosts, so numbers begin at the seconds
  // since 2020 and never come again. Before the first step.
  void lost_ledger(TimeNs now);

  // Inputs are taken in order. Never fails; an input about an unknown job or op is noted.
  std::vector<Order> step(std::span<const Input> inputs, TimeNs now);
  // When step() has to be called although nothing comes in; kNoTime: not at all.
  TimeNs next_ns() const;

  // Changed rows since the last call; to be stored and synced before the orders are carried out.
  std::vector<ActionRecord> drain_actions();
  std::vector<AttemptRecord> drain_attempts();
  std::vector<MachineRecord> drain_machines();

  // Why the job is where it is: sentences, oldest first, at most 64 per job.
  std::vector<std::string> explain(const std::string& key) const;
  std::optional<JobView> view(const std::string& key) const;
  // What keeps the leading verdict of a job from being acted on: sentences. Empty: there is no verdict, or
  // what follows from it is being done.
  std::vector<std::string> waits(const std::string& key) const;
  std::vector<std::string> jobs() const;  // keys, ascending
  // Whether a question of this decision is open: of a job, or of the return of a host.
  bool asks(const std::string& decision) const;
  const Actions& actions() const;
  const Machines& machines() const;
  const Guard& guard() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::recover
