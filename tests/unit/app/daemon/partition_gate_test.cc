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
    const auto answer = one.reserve(order_of(kind));
    BOOST_TEST((answer.state == ActionState::kFailed));
    BOOST_TEST(answer.detail.find("fenced, so nothing was done for 77") == 0u, answer.detail);
  }
  BOOST_TEST(one.state().fenced == 3u);
}

BOOST_AUTO_TEST_CASE(after_it_gave_back_it_begins_no_round) {
  auto one = gate();
  BOOST_REQUIRE(one.begins(true));
  (void)one.give_back();
  BOOST_TEST(!one.begins(true));
  BOOST_TEST(!one.is_open());
}

BOOST_AUTO_TEST_SUITE_END()
