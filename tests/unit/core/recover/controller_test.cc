// The controller over whole incidents. Each requirement that users of other controllers have is a test here,
// in policy_test.cc, guard_test.cc or decide_test.cc. Not here, since they are the executors' (respond/):
// merge patches that remove others' annotations (NVSentinel#1854), eviction by NoExecute
// (descheduler#1114), PreemptMode=CANCEL (MFC#1771), orphans and process trees (EgoVerse#682, TensorRT-LLM
// PR#16404), spares in a reservation (NVRx#348). Not built: excluding an unnamed set of hosts
// (toil#5452): node checks come first, since a wrong exclusion costs hosts and finds nothing.
#include "core/recover/controller.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "controlled_cluster.h"

using namespace culprit;
using namespace culprit::recover;
using namespace culprit::recover::test;

namespace {

const ScheduledJob kJob = job_named("4711");

void same_lines(const Lines& got, const Lines& wanted) {
  BOOST_TEST(got == wanted, boost::test_tools::per_element());
}

HostSeen host_seen(const std::string& host, bool out, const std::string& op = "",
                   const std::string& by = "") {
  HostSeen in;
  in.host = host;
  in.out = out;
  in.op = op;
  in.by = by;
  return in;
}

HostChecked checked(const std::string& host, CheckAnswer answer) { return {host, answer, "test"}; }

// Runs the incident "GPU gone on n1" up to the isolation being done and the job running again.
void isolate_n1(Cluster& k, const ScheduledJob& job = kJob) {
  k.start(job);
  k.verdict(job, gpu_lost("n1", k.now), false);
  k.all_done();
}

// Measured twice, with a third of the step.
VerdictSeen slow_verdict(Diagnosis d) {
  d.rule = "slow";
  d.component = Component::kCpu;
  d.symptom = Symptom::kSlowdown;
  VerdictSeen in;
  in.job = kJob;
  in.diagnosis = std::move(d);
  in.alive = true;
  in.measured = 2;
  in.step_share = 0.3;
  return in;
}

JobMeans means_with(uint32_t eligible) {
  JobMeans means;
  means.job = kJob;
  means.means.may_requeue = true;
  means.eligible = eligible;
  return means;
}

std::string op_on(const Cluster& k, const std::string& host) {
  const MachineRecord* m = k.c.machines().find(host);
  return m == nullptr ? "" : m->op;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_lost_gpu_isolates_its_host_and_the_job_runs_again_without_it) {
  Cluster k;
  k.start(kJob);
  k.progress(kJob, 100, true);
  same_lines(k.verdict(kJob, gpu_lost("n1", k.now), true), {"end-tasks 4711"});
  same_lines(k.result(k.orders[0]), {"isolate n1"});
  BOOST_TEST(k.orders[0].code == "XID79");
  same_lines(k.result(k.orders[0]), {"run-again 4711 -n1"});
  same_lines(k.result(k.orders[0], ActionState::kDone, {"n2", "n3", "n4"}), {"verify 4711"});
  BOOST_TEST(k.state(kJob) == "verify");
  k.start(job_named("4711", 1), {"n2", "n3", "n4"});
  BOOST_TEST(k.c.view(key_of(kJob))->attempt == 2u);
  k.progress(job_named("4711", 1), 101);
  BOOST_TEST(k.state(kJob) == "run");
  BOOST_TEST(!k.c.explain(key_of(kJob)).empty());
}

// toil#5400: the processes' end comes first, so nothing of the last attempt holds the devices.
BOOST_AUTO_TEST_CASE(the_next_attempt_starts_after_the_end_of_the_last_one) {
  Cluster k;
  k.start(kJob);
  k.verdict(kJob, gpu_lost("n1", k.now), true);
  same_lines(k.later(10 * kSecond), {});
  BOOST_TEST(k.state(kJob) == "stop");
}

BOOST_AUTO_TEST_CASE(observe_mode_says_what_it_would_do_and_does_nothing) {
  Cluster k(acting(Mode::kObserve));
  k.start(kJob);
  same_lines(k.verdict(kJob, gpu_lost("n1", k.now), true), {});
  for (const char* line : {"would end-tasks 4711", "would isolate n1", "would run-again 4711"})
    BOOST_TEST(k.noted(NoteKind::kWouldDo, line), line);
  // A revision of the same verdict repeats nothing.
  k.verdict(kJob, gpu_lost("n1", k.now), true);
  BOOST_TEST(k.notes.empty());
  k.verdict(kJob, gpu_lost("n1", k.now), false);
  BOOST_TEST(k.state(kJob) == "held");
  k.start(job_named("4711", 1));  // the scheduler's own requeue
  BOOST_TEST(k.state(kJob) == "run");
  BOOST_TEST(k.c.actions().size() == 0u);
}

BOOST_AUTO_TEST_CASE(ask_mode_has_one_question_for_the_whole_decision) {
  Cluster k(acting(Mode::kAsk));
  k.start(kJob);
  same_lines(k.verdict(kJob, gpu_lost("n1", k.now), true),
             {"ask [end-tasks 4711] [isolate n1] [run-again 4711 -n1]"});
  same_lines(k.give(Approval{k.question.decision, true, "ann"}), {"end-tasks 4711"});
  const std::string op = k.orders[0].op;
  BOOST_TEST(op == k.question.orders[0].op);
  BOOST_TEST(k.c.actions().find(op)->by == "ann");
  same_lines(k.all_done(), {"isolate n1", "run-again 4711 -n1", "verify 4711"});
}

BOOST_AUTO_TEST_CASE(ask_mode_asks_before_it_returns_a_host_that_passed) {
  Cluster k(acting(Mode::kAsk));
  k.start(kJob);
  k.verdict(kJob, gpu_lost("n1", k.now), true);
  k.give(Approval{k.question.decision, true, "ann"});
  k.all_done();
  same_lines(k.give(checked("n1", CheckAnswer::kPassed)), {"ask [return n1]"});
  const std::string decision = k.question.decision;
  BOOST_TEST(k.c.asks(decision));
  same_lines(k.give(checked("n1", CheckAnswer::kPassed)), {});
  same_lines(k.give(Approval{decision, true, "ann"}), {"return n1"});
  BOOST_TEST(!k.c.asks(decision));
}

BOOST_AUTO_TEST_CASE(a_question_expires_and_is_not_asked_again) {
  Cluster k(acting(Mode::kAsk));
  k.start(kJob);
  k.verdict(kJob, gpu_lost("n1", k.now), true);
  k.later(16 * kMin);
  same_lines(k.give(Approval{k.question.decision, true, "ann"}), {});
  same_lines(k.verdict(kJob, gpu_lost("n1", k.now), true), {});
  BOOST_TEST(k.state(kJob) == "run");
}

BOOST_AUTO_TEST_CASE(an_ended_job_waits_for_the_answer) {
  Cluster k(acting(Mode::kAsk));
  k.start(kJob);
  same_lines(k.verdict(kJob, gpu_lost("n1", k.now), false), {"ask [isolate n1] [run-again 4711 -n1]"});
  BOOST_TEST(k.state(kJob) == "held");
  same_lines(k.give(Approval{k.question.decision, true, "ann"}), {"isolate n1"});
}

// NVSentinel#450: queued events of before the reset drained hosts again.
BOOST_AUTO_TEST_CASE(a_reset_forgets_what_was_decided_before) {
  Cluster k(acting(Mode::kAsk));
  k.start(kJob);
  k.verdict(kJob, gpu_lost("n1", k.now), false);
  k.later(kMin);
  k.give(BreakerReset{"ann", kNoTime});
  same_lines(k.give(Approval{k.question.decision, true, "ann"}), {"run-again 4711 -n1"});
}

// NVSentinel#450: only evidence younger than the window.
BOOST_AUTO_TEST_CASE(old_evidence_isolates_nothing) {
  Cluster k;
  k.start(kJob);
  k.later(20 * kMin);
  same_lines(k.verdict(kJob, gpu_lost("n1", k.now - 15 * kMin), false), {"run-again 4711 -n1"});
  Cluster old;
  old.start(kJob);
  same_lines(old.verdict(kJob, gpu_lost("n1", old.now - 15 * kMin), false), {});
  BOOST_TEST(old.noted(NoteKind::kRecord, "older than the attempt"));
}

// NVSentinel PR#1852: the tripped breaker also stopped uncordoning.
BOOST_AUTO_TEST_CASE(the_open_breaker_blocks_isolation_and_no_return) {
  Cluster k(acting(), 100);
  for (int i = 1; i <= 3; ++i) {
    const ScheduledJob job = job_named(std::to_string(i));
    const std::string host = "h" + std::to_string(i);
    k.start(job, {host, "x"});
    Diagnosis d = gpu_lost(host, k.now);
    d.rule = "nvidia.xid." + std::to_string(i);  // not one cause
    const Lines lines = k.verdict(job, d, false);
    if (i == 3) {
      same_lines(lines, {"run-again 3 -h3"});
      BOOST_TEST(k.noted(NoteKind::kRefused, "the breaker is open: 2 hosts isolated within 10m"));
      BOOST_TEST(k.noted(NoteKind::kRefused, "culprit recover reset"));
    }
    k.all_done();
  }
  same_lines(k.give(checked("h1", CheckAnswer::kPassed)), {"return h1"});
}

// NVSentinel#1424, mej/nhc#134: another actor's drain is left alone, and a person's return is a veto.
BOOST_AUTO_TEST_CASE(a_person_who_returns_a_host_vetoes_the_cause_for_a_day) {
  Cluster k;
  isolate_n1(k);
  const std::string op = op_on(k, "n1");
  k.give(host_seen("n1", false, "", "ann"));  // read at the same time: before the isolation, perhaps
  BOOST_TEST(op_on(k, "n1") == op);
  k.now += kSecond;
  k.give(host_seen("n1", false, "", "ann"));
  BOOST_TEST(k.noted(NoteKind::kRecord, "n1 was returned by ann"));
  BOOST_TEST(op_on(k, "n1").empty());
  const ScheduledJob other = job_named("4712");
  k.now += kHour;
  k.start(other);
  same_lines(k.verdict(other, gpu_lost("n1", k.now), false), {"run-again 4712 -n1"});
  BOOST_TEST(k.noted(NoteKind::kRefused, "a person returned n1"));
  k.now += 25 * kHour;
  const ScheduledJob third = job_named("4713");
  k.start(third);
  same_lines(k.verdict(third, gpu_lost("n1", k.now), false), {"isolate n1"});
}

BOOST_AUTO_TEST_CASE(a_host_that_others_hold_out_is_not_touched) {
  Cluster k;
  k.give(host_seen("n1", true, "", "admin"));
  k.start(kJob);
  same_lines(k.verdict(kJob, gpu_lost("n1", k.now), false), {"run-again 4711 -n1"});
  same_lines(k.give(checked("n1", CheckAnswer::kPassed)), {});
}

// mej/nhc#134: an administrator wrote another reason over ours.
BOOST_AUTO_TEST_CASE(a_host_whose_mark_was_overwritten_is_no_longer_ours) {
  Cluster k;
  isolate_n1(k);
  k.now += kSecond;
  k.give(host_seen("n1", true, "", "admin"));
  BOOST_TEST(k.noted(NoteKind::kRecord, "no longer ours"));
  same_lines(k.give(checked("n1", CheckAnswer::kPassed)), {});
}

// NVSentinel#121: a cancelled drain still led to the reboot.
BOOST_AUTO_TEST_CASE(the_precondition_is_read_again_just_before_the_action) {
  Cluster k;
  k.start(kJob);
  k.verdict(kJob, gpu_lost("n1", k.now), true);
  const ActionOrder end = k.orders[0];
  k.give(host_seen("n1", true, "", "admin"));
  same_lines(k.result(end), {"run-again 4711 -n1"});
  Cluster cancelled;
  cancelled.start(kJob);
  cancelled.verdict(kJob, gpu_lost("n1", cancelled.now), true);
  const ActionOrder stop = cancelled.orders[0];
  cancelled.ended(kJob, JobEnd::kCancelled);
  same_lines(cancelled.result(stop), {});
  BOOST_TEST(cancelled.state(kJob) == "done");
}

// NVSentinel#1451: a late result belongs to its decision.
BOOST_AUTO_TEST_CASE(a_late_result_changes_no_later_decision) {
  Cluster k;
  k.start(kJob);
  k.verdict(kJob, gpu_lost("n1", k.now), false);
  const ActionOrder isolate = k.orders[0];
  k.later(31 * kSecond);  // the limit: the job starts without the host
  BOOST_TEST(k.state(kJob) == "restart");
  BOOST_TEST((k.c.actions().find(isolate.op)->state == ActionState::kAmbiguous));
  same_lines(k.result(isolate, ActionState::kFailed), {});
  BOOST_TEST(k.state(kJob) == "restart");
  same_lines(k.result(isolate), {});
  BOOST_TEST(k.noted(NoteKind::kRecord, "a result that nothing waits for"));
}

// draino#116, soperator PR#2807: a return needs a passed check.
BOOST_AUTO_TEST_CASE(only_a_passed_check_returns_a_host) {
  Cluster k;
  isolate_n1(k);
  same_lines(k.give(checked("n1", CheckAnswer::kFailed)), {});
  same_lines(k.give(checked("n1", CheckAnswer::kNoAnswer)), {});
  const std::string op = op_on(k, "n1");
  same_lines(k.give(checked("n1", CheckAnswer::kPassed)), {"return n1"});
  BOOST_TEST(k.orders[0].code == op);
  k.result(k.orders[0]);
  BOOST_TEST(op_on(k, "n1").empty());
  BOOST_TEST((k.c.actions().find(op)->state == ActionState::kUndone));
  BOOST_TEST(k.c.guard().on_probation("n1", k.now));
}

BOOST_AUTO_TEST_CASE(the_third_time_in_7_days_a_person_must_return_it) {
  Cluster k;
  for (int i = 1; i <= 3; ++i) {
    const ScheduledJob job = job_named(std::to_string(i));
    k.start(job);
    k.verdict(job, gpu_lost("n1", k.now), false);
    k.all_done();
    const Lines lines = k.give(checked("n1", CheckAnswer::kPassed));
    same_lines(lines, i < 3 ? Lines{"return n1"} : Lines{});
    if (i == 3) BOOST_TEST(k.noted(NoteKind::kRefused, "n1: third time in 7 days"));
    k.all_done();
    k.ended(job, JobEnd::kCancelled);
    k.now += kDays;
  }
  const std::string op = op_on(k, "n1");
  same_lines(k.give(Undo{op, "ann"}), {"return n1"});
}

// soperator#1316: drained for the user's fault. A user's words isolate nothing, a thousand times.
BOOST_AUTO_TEST_CASE(a_users_words_isolate_nothing) {
  Cluster k;
  for (int i = 0; i < 1000; ++i) {
    const ScheduledJob job = job_named(std::to_string(i));
    const std::string host = "n" + std::to_string(i);
    k.start(job, {host, "x"});
    k.verdict(job, i % 2 == 0 ? forged(host, k.now) : software(k.now), false);
    k.all_done();
    k.ended(job, JobEnd::kCancelled);
    k.now += kMin;
  }
  for (const std::string& line : k.history) BOOST_TEST(!line.starts_with("isolate"), line);
}

// ezpz#231: unclassified, and a healthy host was retired.
BOOST_AUTO_TEST_CASE(without_a_verdict_no_host_is_named) {
  Cluster k;
  k.start(kJob);
  same_lines(k.ended(kJob, JobEnd::kFailed), {});
  BOOST_TEST(k.state(kJob) == "suspect");
  same_lines(k.later(31 * kSecond), {});  // the backoff
  same_lines(k.later(7 * kSecond), {"run-again 4711"});
}

// marin PR#4615, ray PR#41285, pytorch#60910: retries of a fault that comes again for certain.
BOOST_AUTO_TEST_CASE(what_fails_again_for_certain_is_not_started_again_and_says_why) {
  Cluster k;
  k.start(kJob);
  same_lines(k.verdict(kJob, software(k.now), false), {});
  BOOST_TEST(k.state(kJob) == "held");
  BOOST_TEST(k.noted(NoteKind::kHeld, "the same will happen again"));
}

// dlrover#1068: preemptions ate the retries.
BOOST_AUTO_TEST_CASE(preemption_uses_up_no_attempt) {
  Cluster k;
  for (uint32_t i = 0; i < 8; ++i) {
    const ScheduledJob job = job_named("4711", i);
    k.start(job);
    same_lines(k.ended(job, JobEnd::kPreempted), {"run-again 4711"});
    k.all_done();
    k.now += 20 * kMin;
  }
}

// spark-vllm-docker#257: a storm of restarts.
// On 6,000 hosts one more is usual.
BOOST_AUTO_TEST_CASE(five_failures_in_30_minutes_end_the_job) {
  for (const uint32_t size : {2U, 6000U}) {
    Cluster k(acting(), 12'500);
    std::vector<std::string> on;
    for (uint32_t i = 1; i <= size; ++i) on.push_back("n" + std::to_string(i));
    uint32_t starts = 0;
    for (uint32_t i = 0; i < 8 && k.state(kJob) != "held"; ++i, ++starts) {
      const ScheduledJob job = job_named("4711", i);
      k.start(job, on);
      k.progress(job, 10 * (i + 1));
      Diagnosis d = gpu_lost("n1", k.now);
      d.rule = "other." + std::to_string(i);
      d.component = Component::kNcclComm;
      d.category = Category::kUnknown;
      d.action = {};
      d.restart = {};
      d.restart.kind = Restart::kSame;
      k.verdict(job, d, false);
      k.later(10 * kSecond);
      k.all_done();
    }
    BOOST_TEST(starts == (size == 2 ? 5u : 6u));
    BOOST_TEST(k.state(kJob) == "held");
  }
}

// Megatron-LM#5281: 44 equal cycles. nomad#17563: waiting for ever.
BOOST_AUTO_TEST_CASE(the_same_failure_without_progress_ends_the_job) {
  Cluster k;
  Diagnosis torn;
  torn.rule = "checkpoint.torn";
  torn.title = "Checkpoint is damaged";
  torn.component = Component::kStorage;
  torn.confidence = 0.9;
  torn.restart.kind = Restart::kOlder;
  uint32_t starts = 0;
  for (uint32_t i = 0; i < 44 && k.state(kJob) != "held"; ++i, ++starts) {
    k.start(job_named("4711", i));
    k.progress(job_named("4711", i), 7);
    k.verdict(job_named("4711", i), torn, false);
    k.later(6 * kMin);
    k.all_done();
    k.now += 40 * kMin;
  }
  BOOST_TEST(starts == 3u);
}

// ezpz#235: the artefacts showed a swap that had no effect.
BOOST_AUTO_TEST_CASE(an_attempt_on_an_excluded_host_is_reported) {
  Cluster k;
  k.start(kJob);
  k.verdict(kJob, gpu_lost("n1", k.now), false);
  k.result(k.orders[0]);
  k.result(k.orders[0], ActionState::kDone, {"n1", "n2"});
  BOOST_TEST(k.noted(NoteKind::kResult, "the job runs on n1 although it was to be left out"));
}

// jobset#976, kueue#14244: superseded actions end.
BOOST_AUTO_TEST_CASE(another_actors_start_supersedes_ours) {
  Cluster k;
  k.start(kJob);
  k.verdict(kJob, gpu_lost("n1", k.now), false);
  const ActionOrder isolate = k.orders[0];
  same_lines(k.start(job_named("4711", 1)), {"verify 4711"});
  BOOST_TEST(k.state(kJob) == "verify");
  BOOST_TEST((k.c.actions().find(isolate.op)->state == ActionState::kSuperseded));
}

// soperator#854, nomad#17563: waiting for a host is a state with a clock.
BOOST_AUTO_TEST_CASE(waiting_for_resources_has_a_clock) {
  Cluster k;
  k.start(kJob);
  k.verdict(kJob, gpu_lost("n1", k.now), false);
  k.result(k.orders[0]);
  JobMeans means;
  means.job = kJob;
  means.means.may_requeue = true;
  means.pending = true;
  means.pending_reason = "Resources";
  k.give(means);
  k.later(11 * kMin);
  BOOST_TEST(k.state(kJob) == "restart");
  BOOST_TEST(k.noted(NoteKind::kReminder, "Resources"));
  for (int i = 0; i < 8; ++i) k.later(4 * kHour);
  BOOST_TEST(k.state(kJob) == "held");
}

// nomad#17563: the scheduler's queue waits, and starts the job when a host is back.
BOOST_AUTO_TEST_CASE(too_few_hosts_wait_in_the_schedulers_queue) {
  Cluster k;
  k.start(kJob);
  JobMeans means;
  means.job = kJob;
  means.means.may_requeue = true;
  means.eligible = 2;
  k.give(means);
  k.verdict(kJob, gpu_lost("n1", k.now), false);
  same_lines(k.result(k.orders[0]), {"run-again 4711 -n1"});
  BOOST_TEST(k.state(kJob) == "restart");
}

// An id that is used again is another job.
BOOST_AUTO_TEST_CASE(nothing_reaches_a_later_job_with_the_same_id) {
  Cluster k;
  k.start(kJob);
  k.verdict(kJob, gpu_lost("n1", k.now), true);
  const ActionOrder end = k.orders[0];
  k.start(job_named("4711", 0, kStart + kDays));
  BOOST_TEST(k.state(kJob) == "done");
  same_lines(k.result(end), {});
  BOOST_TEST(k.state(job_named("4711", 0, kStart + kDays)) == "run");
}

BOOST_AUTO_TEST_CASE(a_hang_without_a_culprit_is_ended_once) {
  Cluster k;
  k.start(kJob);
  k.progress(kJob, 5);
  SuspectsSeen stalled;
  stalled.job = kJob;
  stalled.stalled = true;
  same_lines(k.give(stalled), {});
  same_lines(k.later(11 * kMin), {"end-tasks 4711"});
  k.result(k.orders[0]);
  same_lines(k.later(7 * kSecond), {"run-again 4711"});
  k.all_done();
  k.start(job_named("4711", 1));
  stalled.job.restarts = 1;
  k.later(kMin);
  k.give(stalled);
  k.later(11 * kMin);
  k.all_done();
  BOOST_TEST(k.state(kJob) == "held");
}

BOOST_AUTO_TEST_CASE(progress_abandons_the_stop_of_a_hang) {
  Cluster k;
  k.start(kJob);
  k.progress(kJob, 5);
  SuspectsSeen stalled;
  stalled.job = kJob;
  stalled.stalled = true;
  k.give(stalled);
  k.later(11 * kMin);
  BOOST_TEST(k.state(kJob) == "stop");
  k.progress(kJob, 6);
  BOOST_TEST(k.state(kJob) == "run");
}

BOOST_AUTO_TEST_CASE(a_failed_node_is_out_already) {
  Cluster k;
  k.start(kJob);
  same_lines(k.ended(kJob, JobEnd::kNodeFailed, {"n2"}), {"run-again 4711 -n2"});
}

// mej/nhc#161: a check without an answer is unknown, also where its peers answered: another job, or a process
// of any user, may be in its way.
BOOST_AUTO_TEST_CASE(a_check_without_an_answer_isolates_nothing) {
  for (const bool peers : {false, true}) {
    Cluster k;
    Diagnosis crash;
    crash.title = "crash";
    crash.symptom = Symptom::kCrash;
    crash.confidence = 0.8;
    for (uint32_t i = 0; i < 2; ++i) {
      k.start(job_named("4711", i));
      k.progress(job_named("4711", i), 3);
      k.verdict(job_named("4711", i), crash, false);
      if (i == 0) k.later(kMin), k.all_done();
    }
    BOOST_TEST(k.state(kJob) == "check");
    if (peers)
      for (const char* host : {"n1", "n2"}) k.give(checked(host, CheckAnswer::kPassed));
    same_lines(k.later(6 * kMin), {});
    BOOST_TEST(k.state(kJob) == "held");
  }
}

BOOST_AUTO_TEST_CASE(a_group_is_isolated_and_its_innocent_hosts_return) {
  Cluster k;
  k.start(kJob);
  Diagnosis d = gpu_lost("n1", k.now);
  d.rule = "hang.group";
  d.component = Component::kNcclComm;
  d.category = Category::kUnknown;
  d.symptom = Symptom::kHang;
  d.action.targets = {"n1", "n2"};
  d.restart = {};
  d.found_by = {"stacks", "plugin:ras"};
  same_lines(k.verdict(kJob, d, false), {"isolate n1", "isolate n2"});
  const std::vector<ActionOrder> both = k.orders;
  same_lines(k.result(both[0]), {"check n1"});
  same_lines(k.result(both[1]), {"check n2", "run-again 4711 -n1 -n2"});
  same_lines(k.give(checked("n2", CheckAnswer::kPassed)), {"return n2"});
}

BOOST_AUTO_TEST_CASE(a_slow_host_is_isolated_at_the_next_checkpoint) {
  Cluster k;
  k.start(kJob);
  same_lines(k.give(slow_verdict(gpu_lost("n1", k.now))), {});
  same_lines(k.progress(kJob, 10), {});
  same_lines(k.progress(kJob, 20, true), {"end-tasks 4711"});
  same_lines(k.all_done(), {"isolate n1", "run-again 4711 -n1", "verify 4711"});
}

// What a user could have written isolates nothing, but the user's own job may run elsewhere.
BOOST_AUTO_TEST_CASE(a_slow_host_in_doubt_is_left_out_at_the_next_checkpoint) {
  Cluster k;
  k.start(kJob);
  same_lines(k.give(slow_verdict(forged("n1", k.now))), {});
  same_lines(k.progress(kJob, 20, true), {"end-tasks 4711"});
  same_lines(k.all_done(), {"check n1", "run-again 4711 -n1", "verify 4711"});
}

BOOST_AUTO_TEST_CASE(a_slow_host_is_left_out_whatever_ends_the_attempt) {
  Cluster k;
  k.start(kJob);
  k.give(slow_verdict(forged("n1", k.now)));
  same_lines(k.verdict(kJob, gpu_lost("n2", k.now), false), {"isolate n2"});
  same_lines(k.all_done(), {"run-again 4711 -n1 -n2", "verify 4711"});
}

BOOST_AUTO_TEST_CASE(a_slow_host_stays_where_the_restart_costs_more_or_hosts_are_too_few) {
  Cluster k;
  k.start(kJob);
  k.give(means_with(3));
  k.give(slow_verdict(forged("n1", k.now)));
  same_lines(k.progress(kJob, 20, true), {});
  k.give(means_with(4));
  VerdictSeen little = slow_verdict(forged("n1", k.now));
  little.step_share = 0.101;
  k.now += kHour;
  for (uint32_t i = 1; i < 20; ++i) {  // the next failure comes soon: 10 % of it are less than a start
    k.verdict(job_named("4711", i - 1), gpu_lost(fmt::format("x{}", i), k.now), false);
    k.all_done();
    k.start(job_named("4711", i));
    k.now += 5 * kMin;
    k.progress(job_named("4711", i), 100 + i);
  }
  little.job = job_named("4711", 19);
  k.give(little);
  same_lines(k.progress(little.job, 200, true), {});
}

BOOST_AUTO_TEST_CASE(a_claim_of_a_user_ends_no_job_that_makes_progress) {
  Cluster k;
  k.start(kJob);
  k.progress(kJob, 10);
  same_lines(k.verdict(kJob, forged("n1", k.now), true), {});
  BOOST_TEST(k.state(kJob) == "run");
}

BOOST_AUTO_TEST_CASE(a_host_in_doubt_is_isolated_when_its_check_fails_and_back_when_it_passes) {
  for (const bool passes : {false, true}) {
    Cluster k;
    k.start(kJob);
    same_lines(k.verdict(kJob, forged("n1", k.now), false), {"check n1", "run-again 4711 -n1"});
    k.all_done();
    const Lines then = k.give(checked("n1", passes ? CheckAnswer::kPassed : CheckAnswer::kFailed));
    same_lines(then, passes ? Lines{} : Lines{"isolate n1"});
    const Lines excluded = k.c.view(key_of(kJob))->excluded;
    same_lines(excluded, passes ? Lines{} : Lines{"n1"});
    if (!passes) k.all_done();
    BOOST_TEST(op_on(k, "n1").empty() == passes);
  }
}

// The hosts that this decision leaves out are no hosts of the next attempt.
BOOST_AUTO_TEST_CASE(checks_come_first_where_the_decision_itself_leaves_too_few_hosts) {
  for (const uint32_t eligible : {3u, 4u}) {
    Cluster k;
    k.start(kJob);
    k.give(means_with(eligible));
    const Lines orders = k.verdict(kJob, forged("n1", k.now), false);
    same_lines(orders, eligible == 3 ? Lines{"check n1"} : Lines{"check n1", "run-again 4711 -n1"});
    if (eligible != 3) continue;
    same_lines(k.give(checked("n1", CheckAnswer::kPassed)), {});
    same_lines(k.later(10 * kSecond), {"run-again 4711"});
  }
}

BOOST_AUTO_TEST_CASE(exclusions_of_earlier_decisions_end_while_the_scheduler_waits_for_hosts) {
  Cluster k;
  k.start(kJob);
  k.verdict(kJob, forged("n1", k.now), false);
  k.all_done();
  const ScheduledJob second = job_named("4711", 1);
  k.start(second, {"n2", "n3", "n4"});
  k.progress(second, 10);
  same_lines(k.verdict(second, gpu_lost("n2", k.now), false), {"isolate n2"});
  same_lines(k.result(k.orders[0]), {"run-again 4711 -n1 -n2"});
  JobMeans waits = means_with(2);
  waits.pending = true;
  same_lines(k.give(waits), {});
  k.now += 11 * kMin;
  same_lines(k.give(waits), {"run-again 4711 -n2"});
  k.now += 11 * kMin;
  same_lines(k.give(waits), {});  // nothing is left that could end
}

// A person's quick return contradicts the isolation; a return after a repair does not.
BOOST_AUTO_TEST_CASE(a_return_after_a_repair_is_no_veto) {
  enum class Sign { kNone, kLate, kCheck, kBoot, kWord };
  for (const Sign sign : {Sign::kNone, Sign::kLate, Sign::kCheck, Sign::kBoot, Sign::kWord}) {
    ControllerOptions options = acting();
    options.guard.stages.give_back = sign != Sign::kCheck;  // a person returns it after the check
    Cluster k(options);
    isolate_n1(k);
    const std::string op = op_on(k, "n1");
    k.now += sign == Sign::kLate ? 2 * kHour : kMin;
    if (sign == Sign::kCheck) k.give(checked("n1", CheckAnswer::kPassed));
    if (sign == Sign::kWord) {
      same_lines(k.give(HostRepaired{"n1", "ann"}), {"return n1"});
      k.all_done();
      BOOST_TEST(k.stored_actions[op].undone_by == "");
    }
    HostSeen back = host_seen("n1", false, "", "ann");
    if (sign == Sign::kBoot) back.boot_ns = k.now;
    k.now += kMin;
    k.give(back);
    const ScheduledJob other = job_named("4712");
    k.start(other);
    const Lines then = k.verdict(other, gpu_lost("n1", k.now), false);
    same_lines(then, sign == Sign::kNone ? Lines{"run-again 4712 -n1"} : Lines{"isolate n1"});
  }
}

// The marks of lost decisions may still be on hosts.
BOOST_AUTO_TEST_CASE(decisions_after_a_lost_ledger_have_numbers_that_no_earlier_one_had) {
  Cluster k;
  k.c.lost_ledger(k.now);
  isolate_n1(k);
  Cluster later;
  later.c.lost_ledger(k.now + kMin);
  isolate_n1(later);
  BOOST_TEST(op_on(k, "n1") != op_on(later, "n1"));
  BOOST_TEST(k.c.view(key_of(kJob))->decision == "d-122166801");
}

BOOST_AUTO_TEST_CASE(a_stage_that_is_off_does_nothing_and_the_others_do) {
  ControllerOptions only_isolate = acting();
  only_isolate.guard.stages = {true, false, false, false};
  Cluster k(only_isolate);
  k.start(kJob);
  same_lines(k.verdict(kJob, gpu_lost("n1", k.now), true), {"isolate n1"});
  k.all_done();
  BOOST_TEST(k.state(kJob) == "run");
  ControllerOptions only_restart = acting();
  only_restart.guard.stages = {false, true, false, false};
  Cluster r(only_restart);
  r.start(kJob);
  same_lines(r.verdict(kJob, gpu_lost("n1", r.now), false), {"run-again 4711 -n1"});
  BOOST_TEST(r.noted(NoteKind::kRefused, "act.isolate"));
}

BOOST_AUTO_TEST_CASE(without_inputs_nothing_happens) {
  Cluster k;
  k.start(kJob);
  for (int i = 0; i < 100; ++i) same_lines(k.later(kHour), {});
  BOOST_TEST(k.c.next_ns() == kNoTime);
}

// A job of weeks would run out of hosts.
BOOST_AUTO_TEST_CASE(an_exclusion_ends_with_the_return_of_the_host_or_after_a_day) {
  Cluster k;
  k.start(kJob);
  same_lines(k.verdict(kJob, forged("n1", k.now), false), {"check n1", "run-again 4711 -n1"});
  k.all_done();
  k.start(job_named("4711", 1));
  k.progress(job_named("4711", 1), 10);
  k.now += 25 * kHour;
  same_lines(k.verdict(job_named("4711", 1), forged("n2", k.now), false), {"check n2", "run-again 4711 -n2"});
  k.give(host_seen("n2", true, "", "admin"));
  k.give(host_seen("n2", false, "", "admin"));
  BOOST_TEST(k.c.view(key_of(kJob))->excluded.empty());
}

BOOST_AUTO_TEST_CASE(earlier_exclusions_end_where_hosts_are_too_few) {
  Cluster k;
  k.start(kJob);
  k.verdict(kJob, forged("n1", k.now), false);
  k.all_done();
  k.start(job_named("4711", 1));
  k.progress(job_named("4711", 1), 10);
  JobMeans means;
  means.job = kJob;
  means.means.may_requeue = true;
  means.eligible = 3;
  k.give(means);
  k.now += kHour;
  same_lines(k.verdict(job_named("4711", 1), gpu_lost("n2", k.now), false), {"isolate n2"});
  same_lines(k.result(k.orders[0]), {"run-again 4711 -n2"});
}

BOOST_AUTO_TEST_CASE(a_hang_with_a_weak_suspicion_is_ended_at_the_limit) {
  Cluster k;
  k.start(kJob);
  Diagnosis d;
  d.symptom = Symptom::kHang;
  d.confidence = 0.6;
  same_lines(k.verdict(kJob, d, true), {});
  BOOST_TEST(k.state(kJob) == "suspect");
  same_lines(k.later(11 * kMin), {"end-tasks 4711"});
}

BOOST_AUTO_TEST_CASE(an_ended_job_waits_30_seconds_for_a_verdict_that_is_settled) {
  Cluster k;
  k.start(kJob);
  VerdictSeen first;
  first.job = kJob;
  first.diagnosis.title = "exit code 1";
  first.settled = false;
  same_lines(k.give(first), {});
  BOOST_TEST(k.state(kJob) == "suspect");
  k.now += 5 * kSecond;
  same_lines(k.verdict(kJob, gpu_lost("n1", k.now), false), {"isolate n1"});
  Cluster alone;
  alone.start(kJob);
  alone.give(first);
  alone.later(31 * kSecond);
  BOOST_TEST(alone.state(kJob) == "place");
}

// Titles quote logs, which users write.
BOOST_AUTO_TEST_CASE(a_reason_has_no_control_characters_and_an_end) {
  Cluster k;
  k.start(kJob);
  Diagnosis d = gpu_lost("n1", k.now);
  d.title = "x\n\x1b[2J" + std::string(1000, 'y');
  k.verdict(kJob, d, false);
  BOOST_TEST(k.orders[0].reason.find('\n') == std::string::npos);
  BOOST_TEST(k.orders[0].reason.find('\x1b') == std::string::npos);
  BOOST_TEST(k.orders[0].reason.size() <= 160u);
}

BOOST_AUTO_TEST_CASE(a_late_line_of_progress_does_not_revive_an_ended_attempt) {
  Cluster k;
  k.start(kJob);
  k.ended(kJob, JobEnd::kFailed);
  k.progress(kJob, 99);
  BOOST_TEST(k.state(kJob) == "suspect");
}
