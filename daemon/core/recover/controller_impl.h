// Internal to core/recover/controller*.cc: the controller's memory of jobs and hosts, and its steps.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/recover/controller.h"

namespace culprit::recover {

// AttemptRecord::cause of an attempt whose hosts the scheduler took.
constexpr std::string_view kPreempted = "preempted";
// The cause of a host that an equal step found.
constexpr std::string_view kAlignRoot = "align: a device computes other bits than its peers";

// Advice that the job got from us.
struct GivenAdvice {
  uint64_t id = 0;
  AdviceKind kind = AdviceKind::kSaveNow;
  TimeNs until_ns = kNoTime;
  bool taken = false;
};

// Advice that waits for an approval.
struct AskedAdvice {
  std::string job;  // key
  uint32_t attempt = 0;
  Advice advice;
  std::string why;
  TimeNs until_ns = kNoTime;
};

// What the controller knows of one job.
struct ControlledJob {
  std::string key;
  ScheduledJob job;
  std::string partition;
  JobState state = JobState::kRun;
  TimeNs since_ns = kNoTime, limit_ns = kNoTime;

  // The current attempt, or the last one.
  AttemptRecord attempt;
  Ledger ledger;
  bool alive = false, runs = false, stalled = false;
  bool counted = false;      // its failure is in the ledger
  bool from_result = false;  // begun by an action's result; the scheduler's own report follows
  bool made_progress = false;
  std::optional<int64_t> best, latest;  // iterations: of all attempts, of this one
  TimeNs start_took_ns = kNoTime;       // begin to first step, of the last attempt that had one

  // The leading case and what follows from it.
  std::optional<Case> lead;
  bool lead_is_restored = false;  // from an action's row: too little to isolate a host
  Treatment treatment;
  Failure failure;
  Decision next;
  bool at_save = false;  // saved: the time to end the attempt for its slow host

  std::optional<JobMeans> means;
  std::map<std::string, TimeNs> excluded;  // hosts, with the time of the decision
  std::vector<std::string> ordered;        // excluded hosts of the latest order to run again
  std::set<std::string> slow;              // left out at the next start, whatever ends the attempt
  int64_t eligible_change = 0;             // by exclusions that began or ended since `means` came

  // The decision that is open, or the latest one.
  std::string decision;
  bool open = false;
  uint32_t decision_attempt = 0;
  std::string decision_root;
  TimeNs decided_ns = kNoTime;
  std::string approved_by;
  TimeNs asks_until_ns = kNoTime;
  std::optional<std::string> declined_root;  // not asked again in this attempt
  std::set<std::string> refused;             // hosts whose refusal was noted for this decision
  std::set<std::string> waits;               // ops without a result, of this state
  bool failed = false;                       // one of them failed
  CheckKind check_kind = CheckKind::kHost;   // of the checks below
  std::map<std::string, CheckAnswer> checks;
  std::string unknown_why;  // of the first check without an answer
  std::set<std::string> checks_wait;
  TimeNs wait_until_ns = kNoTime;     // kPlace
  TimeNs pending_since_ns = kNoTime;  // kRestart

  std::deque<std::string> why;  // explain()

  std::optional<GivenAdvice> advice;
  std::set<std::string> advised;  // kind and root, of this attempt
};

// The leading case is a host that is slow, and that leaves the job after a checkpoint.
bool is_slow_host(const ControlledJob& j);

struct ControlledHost {
  bool out = false;
  std::string op, by, partition;
  TimeNs passed_ns = kNoTime;  // of the latest check that it passed
  TimeNs boot_ns = kNoTime;
};

// A host that is left out in doubt, until its check answers.
struct DoubtfulHost {
  std::string job;  // key
  Case lead;
  TimeNs until_ns = kNoTime;  // of the exclusion
};

// The return of a host that waits for an approval, or its isolation.
struct HostAsk {
  std::string host;
  TimeNs until_ns = kNoTime;
  std::optional<Case> isolate = {};  // nothing: a return
};

// The jobs: evidence in, transitions and orders out (controller_steps.cc; attempts: controller_inputs.cc).
struct JobSteps {
  explicit JobSteps(ControllerOptions given) : options(std::move(given)), guard(options.guard) {}

  ControllerOptions options;
  Guard guard;
  Actions actions;
  Machines machines;
  std::map<std::string, ControlledJob> jobs;
  std::map<std::string, ControlledHost> hosts;
  std::set<std::string> group_hosts;  // isolated as part of a group: a check is due
  std::map<std::string, DoubtfulHost> doubtful;
  uint64_t decisions = 0;
  std::map<std::string, AttemptRecord> attempts_out;  // changed rows
  std::vector<Order> out;
  TimeNs now = kNoTime;

  void apply(ControlledJob& j, JobEvidence evidence);
  void assess(ControlledJob& j);
  void assess_checks(ControlledJob& j);
  void note_checks(const ControlledJob& j, const std::vector<std::string>& failed);
  void note(NoteKind kind, const ControlledJob* j, std::string text,
            std::optional<ActionOrder> order = std::nullopt);
  std::string new_decision();
  ControlledJob* find(const ScheduledJob& job);
  void begin_attempt(ControlledJob& j, const std::vector<std::string>& on);
  void save_attempt(const ControlledJob& j);
  std::vector<std::string> excluded_of(const ControlledJob& j) const;
  Means means_of(const ControlledJob& j) const;
  Limits limits_of(const ControlledJob& j) const;
  bool frees_hosts(const ControlledJob& j) const;
  bool is_in_service(const std::string& host) const;
  bool can_spare(const ControlledJob& j, const std::vector<std::string>& without) const;
  bool pays_to_restart(const ControlledJob& j) const;

 private:
  Facts facts_of(ControlledJob& j);
  void count_failure(ControlledJob& j, bool preempted);
  Failure failure_of(const ControlledJob& j, bool preempted) const;
  Decision preview(const ControlledJob& j) const;
  void enter(ControlledJob& j, JobState state, std::deque<JobEvidence>& more);
  void give_up_waiting(ControlledJob& j);
  void carry_out(ControlledJob& j, DoSet what, JobEvidence evidence);
  void end_attempt(ControlledJob& j);
  void open_decision(ControlledJob& j, DoSet what);
  void close_decision(ControlledJob& j, ActionState state, std::string_view detail);
  std::vector<ActionOrder> plan(ControlledJob& j);
  std::vector<std::string> isolatable(ControlledJob& j, bool tell);
  ActionOrder order_of(const ControlledJob& j, OrderKind kind, const std::string& target) const;
  bool emit(ControlledJob& j, OrderKind kind, const std::string& target, std::string precondition);
  void isolate_hosts(ControlledJob& j);
  void check_hosts(ControlledJob& j);
  void exclude_hosts(ControlledJob& j);
  void leave_out(ControlledJob& j, const std::string& host);
  void check_doubtful(ControlledJob& j);
  void ask_again(ControlledJob& j);
  std::string decided_sentence(const ControlledJob& j) const;
};

// The hosts: isolation, return, reconciliation (controller_hosts.cc).
struct HostSteps : JobSteps {
  using JobSteps::JobSteps;

  std::map<std::string, HostAsk> host_asks;  // by decision

  void take(const HostSeen& in);
  void take(const HostChecked& in);
  void take(const Undo& in);
  void take(const HostRepaired& in);
  void settle_isolation(const ActionRecord& record, const ActionResult& result);
  void settle_return(const ActionRecord& record, const ActionResult& result);
  void answer_host_ask(const std::string& decision, bool approved, const std::string& by);

 private:
  void reconcile(const std::string& host, const ControlledHost& was);
  void include_host(const std::string& host);
  bool answer_jobs(const HostChecked& in);
  bool is_undo(const std::string& host, TimeNs isolated_ns) const;
  void isolate_doubtful(const std::string& host);
  void isolate_spare(const std::string& host, const std::string& why);
  void isolate_checked(const std::string& host, const Case& why, const ControlledJob* job,
                       const std::string& decision, const std::string& by);
  void offer_return(const std::string& host, std::string_view why);
  void order_return(const std::string& host, const std::string& decision, const std::string& by);
};

// Advice to jobs (controller_advice.cc).
struct AdviceSteps : HostSteps {
  using HostSteps::HostSteps;

  std::map<std::string, AskedAdvice> asked;  // by decision
  uint64_t advice_id = 0;                    // of the latest

  void advise(ControlledJob& j);
  void answer_advice(const std::string& decision, bool approved, const std::string& by);
  // Whether it completes a checkpoint that this advice asked for.
  bool note_outcome(const AdviceSeen& in);
  void end_late_advice();

 private:
  void give_advice(ControlledJob& j, const AskedAdvice& what);
};

// Inputs about jobs, results and persons (controller_inputs.cc), and the restart (controller_restore.cc).
struct Controller::Impl : AdviceSteps {
  using AdviceSteps::AdviceSteps;
  using HostSteps::take;

  std::map<std::string, std::string> key_by_id;  // scheduler and id: the newest job with it
  std::vector<AttemptRecord> loaded;
  std::map<std::string, ActionState> elsewhere;  // isolations of other members, by op
  TimeNs pruned_ns = kNoTime;

  void take(const ControllerOptions& in);
  void take(const ClusterSeen& in);
  void take(const AttemptStarted& in);
  void take(const JobMeans& in);
  void take(const VerdictSeen& in);
  void take(const SuspectsSeen& in);
  void take(const ProgressSeen& in);
  void take(const AttemptEnded& in);
  void take(const JobChanged& in);
  void take(const ActionResult& in);
  void take(const Approval& in);
  void take(const BreakerReset& in);
  void take(const Restored& in);
  void take(const Tick&) {}
  void take(const AdviceSeen& in);
  void take(const LedgerSeen& in);
  void take(const JobAdopted& in);
  void fire_limits();

 private:
  void settle_job(ControlledJob& j, const ActionRecord& record, const ActionResult& in);
  void restore_guard();
  void count_isolation(const ActionRecord& record);
  void restore_jobs();
  void restore_attempt(const AttemptRecord& record);
  void restore_case(ControlledJob& j, const ActionRecord& record);
  bool restore_decision(ControlledJob& j, const std::vector<ActionOrder>& again);
  void restore_wait(ControlledJob& j);
};

}  // namespace culprit::recover
