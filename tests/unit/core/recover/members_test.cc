// Several members with a controller each: what one knows of another's jobs, isolations and vetoes.
#include <boost/test/unit_test.hpp>

#include <vector>

#include "controlled_cluster.h"

using namespace culprit;
using namespace culprit::recover;
using namespace culprit::recover::test;

BOOST_AUTO_TEST_SUITE(members)

namespace {

const ScheduledJob kJob = job_named("4711");

JobAdopted rows_of(const Cluster& k) {
  JobAdopted out;
  out.job = kJob;
  for (const auto& [op, row] : k.stored_actions) out.actions.push_back(row);
  for (const auto& [key, row] : k.stored_attempts) out.attempts.push_back(row);
  return out;
}

LedgerSeen seen_of(const Cluster& k) {
  LedgerSeen out;
  for (const auto& [op, row] : k.stored_actions)
    if (row.order.kind == OrderKind::kIsolate) out.isolations.push_back(row);
  for (const auto& [key, row] : k.stored_machines) out.machines.push_back(row);
  return out;
}

Cluster other_member(TimeNs now, ControllerOptions options = acting(), uint32_t size = 1200) {
  Cluster out(std::move(options), size);
  out.now = now;
  out.c.lost_ledger(now);
  return out;
}

// Isolates a host for a job of its own.
std::vector<std::string> lose(Cluster& k, const std::string& job, const std::string& host) {
  k.start(job_named(job), {host, "other"});
  return k.verdict(job_named(job), gpu_lost(host, k.now), false);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_new_owner_acts_for_what_failed_before_it_had_the_job) {
  Cluster a;
  a.start(kJob);
  const TimeNs lost = a.now + 5 * kMin;
  Cluster b = other_member(a.now + 6 * kMin);
  b.give(rows_of(a));
  b.start(kJob);  // as the scheduler shows it
  BOOST_TEST(b.c.view(key_of(kJob))->attempt == 1u);
  BOOST_TEST((b.verdict(kJob, gpu_lost("n1", lost), false) == Lines{"isolate n1"}));
  b.all_done();
  BOOST_TEST(std::ranges::count(b.history, "run-again 4711 -n1") == 1);
}

BOOST_AUTO_TEST_CASE(a_new_owner_goes_on_with_the_decision_of_the_one_before) {
  Cluster a;
  a.start(kJob);
  a.verdict(kJob, gpu_lost("n1", a.now), true);
  a.result(ActionOrder(a.orders[0]));  // its processes have ended
  a.result(ActionOrder(a.orders[0]));  // n1 is isolated
  Cluster b = other_member(a.now + kMin);
  JobAdopted rows = rows_of(a);
  std::erase_if(rows.actions, [](const ActionRecord& row) { return row.state == ActionState::kReserved; });
  BOOST_TEST((b.give(rows) == Lines{"run-again 4711 -n1"}));
}

// The member before may have carried it out, or may still.
BOOST_AUTO_TEST_CASE(an_order_without_a_result_is_not_given_again) {
  Cluster a;
  a.start(kJob);
  a.verdict(kJob, gpu_lost("n1", a.now), false);
  Cluster isolating = other_member(a.now + kSecond);
  BOOST_TEST((isolating.give(rows_of(a)) == Lines{"run-again 4711 -n1"}));
  a.result(ActionOrder(a.orders[0]));
  BOOST_REQUIRE((a.orders.size() == 1 && a.orders[0].kind == OrderKind::kRunAgain));
  Cluster starting = other_member(a.now + kSecond);
  BOOST_TEST((starting.give(rows_of(a)) == Lines{}));
  BOOST_TEST(starting.state(kJob) == "held");
}

BOOST_AUTO_TEST_CASE(what_a_person_declined_is_not_asked_again_by_a_new_owner_or_after_a_restart) {
  Cluster a(acting(Mode::kAsk));
  a.start(kJob);
  BOOST_TEST(a.verdict(kJob, gpu_lost("n1", a.now), true).size() == 1u);
  a.give(Approval{a.question.decision, false, "ann"});
  Cluster b = other_member(a.now + kMin, acting(Mode::kAsk));
  b.give(rows_of(a));
  BOOST_TEST((b.verdict(kJob, gpu_lost("n1", b.now), true) == Lines{}));
  Cluster again(acting(Mode::kAsk));
  again.now = b.now;
  for (const auto& [key, row] : a.stored_attempts) BOOST_TEST(again.c.load(AttemptRecord(row)));
  again.give(Restored{});
  BOOST_TEST((again.verdict(kJob, gpu_lost("n1", again.now), true) == Lines{}));
}

// Three hosts in ten minutes are the limit for 1,200.
BOOST_AUTO_TEST_CASE(the_breaker_counts_the_isolations_of_all_members) {
  Cluster a;
  Cluster b = other_member(a.now);
  for (const char* host : {"n1", "n2", "n3"}) {
    BOOST_TEST((lose(a, std::string("of-") + host, host) == Lines{std::string("isolate ") + host}));
    a.all_done();
    b.give(seen_of(a));  // rows come again
  }
  b.now = a.now + kMin;
  BOOST_TEST((lose(b, "12", "n4") == Lines{"run-again 12 -n4"}));
  BOOST_TEST(b.noted(NoteKind::kRefused, "3 hosts"));
  b.give(BreakerReset{"ann", b.now});
  b.now += kSecond;
  BOOST_TEST((lose(b, "13", "n5") == Lines{"isolate n5"}));
}

BOOST_AUTO_TEST_CASE(a_veto_at_one_member_holds_at_all) {
  Cluster a;
  lose(a, "12", "n1");
  a.all_done();
  Cluster b = other_member(a.now);
  b.give(seen_of(a));
  HostSeen back;
  back.host = "n1";
  back.by = "ann";
  a.now += kSecond;
  a.give(back);
  b.now = a.now + kSecond;
  b.give(seen_of(a));
  BOOST_TEST((lose(b, "13", "n1") == Lines{"run-again 13 -n1"}));
  BOOST_TEST(b.noted(NoteKind::kRefused, "a person returned n1"));
}

BOOST_AUTO_TEST_CASE(an_isolation_that_failed_elsewhere_counts_no_more) {
  Cluster a, b = other_member(a.now);
  lose(a, "12", "n1");
  b.give(seen_of(a));
  BOOST_TEST(b.c.guard().at_once() == 1u);
  a.result(ActionOrder(a.orders[0]), ActionState::kFailed);
  b.give(seen_of(a));
  BOOST_TEST(b.c.guard().at_once() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
