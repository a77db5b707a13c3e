// The gate of a member whose database cannot be reached. With a database: tests/e2e/cases_cluster.py.
#include "app/daemon/recover/partition_gate.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_SUITE(gates_of_partitions)

namespace {

PartitionGate gate() { return PartitionGate({"host=/nowhere dbname=culprit", "x", "x.example:7421"}); }

ActionOrder order_of(OrderKind kind) {
  ActionOrder order;
  order.kind = kind;
  order.target = "n2";
  order.job.id = "77";
  return order;
}

// A database that answers rounds and orders, or does not.
class FakeStore final : public store::postgres::ClusterStore {
 public:
  FakeStore() : ClusterStore({"", "x", "x.example:7421"}) {}
  Result<Answer> round(const Asked& asked) override {
    if (is_away) return fail(ErrorCode::kIo, "away");
    Answer out;
    const PartHold own{cluster::partition_of("77"), epoch};
    if (asked.adopt) out.adopted = {own};
    for (const PartHold& one : asked.renew)
      if (one.epoch == epoch) out.renewed.push_back(one.part);
    return out;
  }
  Result<Reservation> reserve(const store::postgres::ReservedAction&) override {
    ++tries;
    if (is_away) return fail(ErrorCode::kIo, "away");
    return Reservation{Reserved::kYes, ""};
  }
  bool is_away = false;
  uint64_t epoch = 3;
  int tries = 0;
};

// A member that owns the job 77, and its clock.
struct Owner {
  Owner() { round(); }
  void round() {
    if (gate.begins(false)) gate.round(now);
  }
  // Rounds go on while an order waits. The database is back `away_ns` after now.
  PartitionGate::Answer reserves(OrderKind kind, TimeNs away_ns) {
    const TimeNs back_ns = now + away_ns;
    store->is_away = true;
    return gate.reserve(order_of(kind), [&](TimeNs ns) {
      now += ns;
      store->is_away = now < back_ns;
      round();
      return true;
    });
  }
  TimeNs now = kNsPerSecond;
  FakeStore* store = new FakeStore;
  PartitionGate gate{{"", "x", "x.example:7421"},
                     std::unique_ptr<store::postgres::ClusterStore>(store),
                     [this] { return now; }};
};

}  // namespace

BOOST_AUTO_TEST_CASE(without_a_database_it_owns_nothing_and_names_no_owner) {
  auto one = gate();
  BOOST_REQUIRE(one.begins(true));
  BOOST_TEST(!one.begins(true));  // a round is at work
  one.round(5);
  BOOST_TEST(!one.is_open());
  BOOST_TEST(!one.epoch("77").has_value());
  BOOST_TEST(one.others_jobs({"77"}, [](const std::string& job) { return job; }).empty());
  const PartitionGate::State state = one.state();
  BOOST_TEST(!state.error.empty());
  BOOST_TEST(state.error_since_ns == 5);
  BOOST_TEST(state.owned.empty());
  BOOST_REQUIRE(one.trouble());
  BOOST_TEST(one.trouble()->text.find("the cluster's database does not answer") == 0u);
}

BOOST_AUTO_TEST_CASE(without_a_database_each_order_is_fenced) {
  auto one = gate();
  for (const OrderKind kind : {OrderKind::kIsolate, OrderKind::kReturn, OrderKind::kVerify}) {
    const auto answer = one.reserve(order_of(kind), [](TimeNs) { return false; });
    BOOST_TEST((answer.state == ActionState::kFailed));
    BOOST_TEST(answer.detail.find("fenced, so nothing was done for 77") == 0u, answer.detail);
  }
  BOOST_TEST(one.state().fenced == 3u);
}

BOOST_AUTO_TEST_CASE(an_order_waits_for_a_database_that_restarts) {
  for (const TimeNs away_ns : {5 * kNsPerSecond, 50 * kNsPerSecond}) {
    Owner owner;
    BOOST_REQUIRE(owner.gate.is_open());
    const auto answer = owner.reserves(OrderKind::kRunAgain, away_ns);
    BOOST_TEST((answer.state == ActionState::kReserved), answer.detail);
    BOOST_TEST(owner.gate.state().reserved == 1u);
    BOOST_TEST(owner.gate.state().fenced == 0u);
  }
}

BOOST_AUTO_TEST_CASE(an_order_waits_a_minute_and_not_longer) {
  Owner owner;
  const TimeNs began = owner.now;
  const auto answer = owner.reserves(OrderKind::kRunAgain, 120 * kNsPerSecond);
  BOOST_TEST((answer.state == ActionState::kFailed));
  BOOST_TEST(answer.detail.find("the cluster's database did not store it: away") != std::string::npos);
  BOOST_TEST(owner.now - began == 60 * kNsPerSecond);
}

BOOST_AUTO_TEST_CASE(an_order_that_waited_is_fenced_once_another_owner_had_the_job) {
  Owner owner;
  owner.store->epoch = 5;
  const auto answer = owner.reserves(OrderKind::kRunAgain, 20 * kNsPerSecond);
  BOOST_TEST((answer.state == ActionState::kFailed));
  BOOST_TEST(answer.detail.find("fenced, so nothing was done for 77") == 0u, answer.detail);
  BOOST_TEST(owner.gate.state().reserved == 0u);
}

BOOST_AUTO_TEST_CASE(after_it_gave_back_it_begins_no_round) {
  auto one = gate();
  BOOST_REQUIRE(one.begins(true));
  (void)one.give_back();
  BOOST_TEST(!one.begins(true));
  BOOST_TEST(!one.is_open());
}

BOOST_AUTO_TEST_SUITE_END()
