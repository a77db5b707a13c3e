// Advice of the controller to the loops of jobs: when, in which mode, once, and what came of it.
#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "controlled_cluster.h"
#include "core/recover/recording.h"

using namespace culprit;
using namespace culprit::recover;
using namespace culprit::recover::test;

namespace {

const ScheduledJob kAdvised = job_named("4711");

ControllerOptions advising(Mode mode = Mode::kAct) {
  ControllerOptions out = acting(mode);
  out.advise = true;
  return out;
}

VerdictSeen slow_host(TimeNs at, double share = 0.3) {
  VerdictSeen in;
  in.job = kAdvised;
  in.diagnosis = gpu_lost("n1", at);
  in.diagnosis.rule = "slow";
  in.diagnosis.component = Component::kCpu;
  in.diagnosis.symptom = Symptom::kSlowdown;
  in.alive = true;
  in.measured = 2;
  in.step_share = share;
  return in;
}

VerdictSeen wrong_numbers(TimeNs at) {
  VerdictSeen in = slow_host(at);
  in.diagnosis.rule = "numbers.spike";
  in.diagnosis.category = Category::kUser;
  in.diagnosis.component = Component::kUnknown;
  in.diagnosis.symptom = Symptom::kNumeric;
  in.diagnosis.action = {};
  in.diagnosis.restart = {};
  in.diagnosis.hosts.clear();
  in.diagnosis.iteration = 120;
  return in;
}

AdviceSeen outcome_of(AdviceOutcome outcome, uint64_t id) {
  return {kAdvised, id, AdviceKind::kSaveNow, outcome, 4, 130, ""};
}

uint64_t id_at(TimeNs now) { return static_cast<uint64_t>(now / kNsPerMs); }

using Orders = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(no_job_is_advised_unless_it_is_switched_on) {
  Cluster k;
  k.start(kAdvised);
  BOOST_TEST(k.give(slow_host(k.now)).empty());
  BOOST_TEST(k.give(wrong_numbers(k.now)).empty());
}

BOOST_AUTO_TEST_CASE(a_slow_host_is_saved_for_then_isolated) {
  Cluster k(advising());
  k.start(kAdvised);
  k.progress(kAdvised, 100);
  BOOST_TEST(k.give(slow_host(k.now)) == Orders{"advise save_now 4711"});
  BOOST_TEST(k.give(slow_host(k.now)).empty());  // once
  BOOST_TEST(k.give(outcome_of(AdviceOutcome::kTaken, id_at(k.now))).empty());
  BOOST_TEST(k.noted(NoteKind::kResult, "taken by 4 ranks at step 130"));
  BOOST_TEST(k.give(outcome_of(AdviceOutcome::kAchieved, id_at(k.now))) == Orders{"end-tasks 4711"});
  const Orders rest = k.all_done();
  BOOST_TEST((std::ranges::find(rest, "isolate n1") != rest.end()));
}

BOOST_AUTO_TEST_CASE(a_restart_that_does_not_pay_is_not_advised) {
  Cluster k(advising());
  k.start(kAdvised);
  BOOST_TEST(k.give(slow_host(k.now, 0.000001)).empty());
}

BOOST_AUTO_TEST_CASE(observe_mode_says_what_it_would_advise) {
  Cluster k(advising(Mode::kObserve));
  k.start(kAdvised);
  BOOST_TEST(k.give(slow_host(k.now)).empty());
  BOOST_TEST(k.noted(NoteKind::kWouldDo, "would advise save_now to job 4711"));
}

BOOST_AUTO_TEST_CASE(ask_mode_advises_after_an_approval_alone) {
  for (const bool approved : {true, false}) {
    Cluster k(advising(Mode::kAsk));
    k.start(kAdvised);
    BOOST_TEST(k.give(slow_host(k.now)) == Orders{"ask"});
    BOOST_TEST(k.question.advises);
    BOOST_TEST(k.c.asks(k.question.decision));
    const Orders given = k.give(Approval{k.question.decision, approved, "ann"});
    BOOST_TEST((given == (approved ? Orders{"advise save_now 4711"} : Orders{})));
    BOOST_TEST(!k.c.asks(k.question.decision));
    BOOST_TEST(k.give(slow_host(k.now)).empty());  // and it is not asked again
  }
}

BOOST_AUTO_TEST_CASE(a_question_about_advice_expires) {
  Cluster k(advising(Mode::kAsk));
  k.start(kAdvised);
  k.give(slow_host(k.now));
  const std::string decision = k.question.decision;
  BOOST_TEST(k.c.next_ns() != kNoTime);
  BOOST_TEST(k.later(16 * kMin).empty());
  BOOST_TEST(!k.c.asks(decision));
  BOOST_TEST(k.give(Approval{decision, true, "ann"}).empty());
}

BOOST_AUTO_TEST_CASE(advice_that_no_rank_takes_is_noted_as_not_applied) {
  Cluster k(advising());
  k.start(kAdvised);
  k.give(slow_host(k.now));
  k.later(11 * kMin);
  BOOST_TEST(k.noted(NoteKind::kResult, "not applied: no rank took it in time"));
}

BOOST_AUTO_TEST_CASE(refused_advice_changes_nothing) {
  Cluster k(advising());
  k.start(kAdvised);
  k.give(slow_host(k.now));
  BOOST_TEST(k.give(outcome_of(AdviceOutcome::kRefused, id_at(k.now))).empty());
  BOOST_TEST(k.noted(NoteKind::kResult, "refused by 4 ranks"));
  k.later(11 * kMin);
  BOOST_TEST(!k.noted(NoteKind::kResult, "not applied"));
}

BOOST_AUTO_TEST_CASE(wrong_numbers_advise_to_go_back_before_the_first_wrong_step) {
  Cluster k(advising());
  k.start(kAdvised);
  BOOST_TEST(k.give(wrong_numbers(k.now)) == Orders{"advise rollback 4711"});
}

BOOST_AUTO_TEST_CASE(a_report_about_an_unknown_job_or_an_earlier_attempt_has_no_effect) {
  Cluster k(advising());
  AdviceSeen in = outcome_of(AdviceOutcome::kAchieved, 5);
  BOOST_TEST(k.give(in).empty());
  k.start(job_named("4711", 2));
  BOOST_TEST(k.give(in).empty());
  BOOST_TEST(!k.noted(NoteKind::kResult, "achieved"));
}

BOOST_AUTO_TEST_CASE(recorded_advice_replays_to_the_same_orders) {
  const ControllerOptions options = advising();
  InputRecorder recorder;
  Controller c(options);
  TimeNs now = kStart + kHour;
  std::vector<std::string> lines = {recorder.header(kStart, 1), recorder.start(options, kNoTime)};
  size_t advised = 0;
  const auto give = [&](std::vector<Input> inputs) {
    const std::vector<Order> orders = c.step(inputs, now);
    for (const Order& order : orders) advised += std::holds_alternative<AdviceOrder>(order);
    lines.push_back(recorder.step(inputs, now, orders));
    now += kSecond;
  };
  give({ClusterSeen{1200}, AttemptStarted{kAdvised, {"n1", "n2"}, "train", {}, ""}});
  give({slow_host(now)});
  give({outcome_of(AdviceOutcome::kTaken, id_at(now))});
  give({outcome_of(AdviceOutcome::kAchieved, id_at(now))});
  BOOST_TEST(advised == 1u);
  Replayer replayer;
  for (const std::string& line : lines) BOOST_REQUIRE(replayer.line(line).has_value());
  BOOST_TEST(replayer.result().different == 0u, replayer.result().first_difference);
  BOOST_TEST(replayer.result().orders >= 2u);
}
