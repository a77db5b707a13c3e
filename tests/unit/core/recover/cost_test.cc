// What failures cost, and the ledger of actions and machines.
#include "core/recover/cost.h"

#include <boost/test/unit_test.hpp>

#include "core/recover/actions.h"

using namespace culprit;
using namespace culprit::recover;

namespace {

constexpr TimeNs kAt = 1'700'000'000 * kNsPerSecond;
TimeNs after_s(int64_t s) { return kAt + s * kNsPerSecond; }

// Trains from 60 s to 960 s, saves at 660 s, hangs until 1060 s; the next one trains from 1160 s to 2160 s.
std::vector<AttemptRecord> two_attempts() {
  AttemptRecord a;
  a.job.scheduler = "slurm";
  a.job.id = "1";
  a.attempt = 1;
  a.begin_ns = after_s(0);
  a.first_step_ns = after_s(60);
  a.saved_ns = after_s(660);
  a.last_progress_ns = after_s(960);
  a.detected_ns = after_s(1050);
  a.decided_ns = after_s(1055);
  a.end_ns = after_s(1060);
  a.root = "xid";
  a.cause = "device";
  a.decision = "d-0001";
  AttemptRecord b;
  b.job = a.job;
  b.job.restarts = 1;
  b.attempt = 2;
  b.begin_ns = after_s(1100);
  b.first_step_ns = after_s(1160);
  b.last_progress_ns = after_s(2160);
  b.end_ns = after_s(2160);
  return {a, b};
}

ActionRecord isolation_of(const std::string& decision, const std::string& host) {
  ActionRecord r;
  r.order.decision = decision;
  r.order.kind = OrderKind::kIsolate;
  r.order.target = host;
  return r;
}

}  // namespace

BOOST_AUTO_TEST_CASE(effective_training_time_leaves_out_what_is_computed_again) {
  const std::vector<AttemptRecord> attempts = two_attempts();
  const Loss loss = loss_of(attempts[0], &attempts[1]);
  BOOST_TEST(loss.stalled_s == 100.0);
  BOOST_TEST(loss.redone_s == 300.0);
  BOOST_TEST(loss.away_s == 100.0);
  const Cost cost = cost_of(attempts);
  BOOST_TEST(cost.jobs == 1u);
  BOOST_TEST(cost.failures == 1u);
  BOOST_TEST(cost.wall_s == 2160.0);
  BOOST_TEST(cost.productive_s == 600.0 + 1000.0);
  BOOST_TEST(cost.ettr() == 1600.0 / 2160.0);
  BOOST_TEST(cost.lost_s.at("device") == 500.0);
  BOOST_TEST(cost.detect.median_s == 90.0);
  BOOST_TEST(cost.decide.median_s == 5.0);
  BOOST_TEST(cost.again.median_s == 105.0);
}

BOOST_AUTO_TEST_CASE(the_order_of_the_rows_does_not_matter) {
  std::vector<AttemptRecord> attempts = two_attempts();
  std::swap(attempts[0], attempts[1]);
  attempts.push_back(two_attempts()[0]);
  attempts.back().job.id = "2";
  const Cost cost = cost_of(attempts);
  BOOST_TEST(cost.jobs == 2u);
  BOOST_TEST(cost.wall_s == 2160.0 + 1060.0);
  BOOST_TEST(cost_of({}).ettr() == 0.0);
}

BOOST_AUTO_TEST_CASE(quantiles_by_nearest_rank) {
  const Quantiles q = quantiles_of({5, 1, 4, 2, 3, 6, 7, 8, 9, 10});
  BOOST_TEST(q.median_s == 5.0);
  BOOST_TEST(q.p90_s == 9.0);
  BOOST_TEST(q.most_s == 10.0);
  BOOST_TEST(quantiles_of({}).count == 0u);
}

BOOST_AUTO_TEST_CASE(the_key_of_an_action_differs_with_decision_kind_and_target) {
  const std::string op = op_of("d-0001", OrderKind::kIsolate, "n1");
  BOOST_TEST(op.size() == 16u);
  BOOST_TEST(op == op_of("d-0001", OrderKind::kIsolate, "n1"));
  BOOST_TEST(op != op_of("d-0002", OrderKind::kIsolate, "n1"));
  BOOST_TEST(op != op_of("d-0001", OrderKind::kReturn, "n1"));
  BOOST_TEST(op != op_of("d-0001", OrderKind::kIsolate, "n2"));
}

BOOST_AUTO_TEST_CASE(an_action_is_reserved_once_whatever_came_of_it) {
  for (const ActionState state : {ActionState::kDone, ActionState::kFailed, ActionState::kAmbiguous}) {
    Actions ledger;
    ActionRecord r = isolation_of("d-0001", "n1");
    BOOST_TEST(ledger.reserve(r, kAt));
    BOOST_TEST(ledger.drain().size() == 1u);
    ActionResult result;
    result.op = r.order.op;
    result.state = state;
    result.at_ns = after_s(1);
    BOOST_TEST((ledger.settle(result) != nullptr));
    BOOST_TEST(!ledger.reserve(r, after_s(2)));
    BOOST_TEST(ledger.open().empty());
  }
}

BOOST_AUTO_TEST_CASE(a_result_that_is_none_counts_as_ambiguous) {
  Actions ledger;
  ActionRecord r = isolation_of("d-0001", "n1");
  ledger.reserve(r, kAt);
  ActionResult result;
  result.op = r.order.op;
  result.state = ActionState::kReserved;
  BOOST_TEST((ledger.settle(result)->state == ActionState::kAmbiguous));
}

BOOST_AUTO_TEST_CASE(rows_are_forgotten_after_400_days_but_an_isolation_in_force_is_not) {
  Actions ledger;
  ActionRecord returned = isolation_of("d-0001", "n1"), in_force = isolation_of("d-0002", "n2");
  for (ActionRecord* r : {&returned, &in_force}) {
    ledger.reserve(*r, kAt);
    ActionResult done;
    done.op = r->order.op;
    done.state = ActionState::kDone;
    done.at_ns = kAt;
    ledger.settle(done);
  }
  ledger.undo(returned.order.op, "ann", "", kAt);
  ledger.prune(kAt + Actions::kRetention - 1);
  BOOST_TEST(ledger.size() == 2u);
  ledger.prune(kAt + Actions::kRetention);
  BOOST_TEST(ledger.size() == 1u);
  BOOST_TEST((ledger.find(in_force.order.op) != nullptr));
}

BOOST_AUTO_TEST_CASE(machines_count_what_happened_to_them) {
  Machines machines;
  constexpr TimeNs kWeek = 7 * 24 * 3600 * kNsPerSecond;
  BOOST_TEST(machines.again("n1", kWeek, kAt) == "");
  for (int i = 0; i < 3; ++i) {
    machines.isolated("n1", "op", "xid", after_s(i));
    machines.returned("n1", after_s(i));
  }
  BOOST_TEST(machines.again("n1", kWeek, after_s(3)) == "n1: third time in 7 days");
  BOOST_TEST(machines.again("n1", kWeek, after_s(1) + kWeek) == "");
  machines.isolated("n2", "op", "xid", after_s(3));
  BOOST_TEST(machines.hosts_of_cause("xid", "n3", kWeek, after_s(4)) == 2u);
  BOOST_TEST(machines.hosts_of_cause("xid", "n1", kWeek, after_s(4)) == 1u);
  BOOST_TEST(machines.find("n1")->returned == 3u);
  BOOST_TEST(machines.find("n2")->op == "op");
  Machines after;
  for (MachineRecord& row : machines.drain()) after.load(std::move(row));
  BOOST_TEST(after.again("n1", kWeek, after_s(3)) == "n1: third time in 7 days");
  BOOST_TEST(after.hosts_of_cause("xid", "n3", kWeek, after_s(4)) == 2u);
}
