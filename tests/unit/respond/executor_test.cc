// Orders between the loop and a backend's thread.
#include "respond/executor.h"

#include <boost/test/unit_test.hpp>

#include "../io/fake_env.h"
#include "fake_pace.h"
#include "respond/order.h"

using namespace culprit;
using namespace culprit::respond;
using respond::testing::order_for;

namespace {

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(int& calls) : calls_(calls) {}
  std::string_view name() const override { return "fake"; }
  bool can(OrderKind kind) const override { return kind != OrderKind::kEndTasks; }
  ActionResult carry_out(const ActionOrder& order, Pace& pace) const override {
    ++calls_;
    return result_of(order, pace.pause(0) ? ActionState::kDone : ActionState::kAmbiguous, order.target);
  }

 private:
  int& calls_;
};

struct ExecutorCase {
  io::testing::FakeEnv env;
  int calls = 0;
  std::unique_ptr<Executor> executor = *Executor::make(env, std::make_unique<FakeBackend>(calls));
  std::vector<ActionResult> results;

  void carry_out(const ActionOrder& order) {
    executor->carry_out(order, [this](ActionResult result) { results.push_back(std::move(result)); });
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(executor)

BOOST_AUTO_TEST_CASE(a_result_comes_once_on_the_loop_and_never_from_within) {
  ExecutorCase t;
  t.carry_out(order_for(OrderKind::kIsolate));
  t.carry_out(order_for(OrderKind::kEndTasks));         // the backend has none
  t.carry_out(order_for(OrderKind::kIsolate, "n1;x"));  // malformed: the backend never sees it
  BOOST_TEST(t.results.empty());
  BOOST_TEST(t.executor->waiting() == 3U);
  t.env.run();
  BOOST_REQUIRE(t.results.size() == 3U);
  BOOST_TEST((t.results[0].state == ActionState::kDone));
  BOOST_TEST(t.results[0].op == "00112233445566aa");
  BOOST_TEST(t.results[0].at_ns == t.env.wall_ns);
  BOOST_TEST((t.results[1].state == ActionState::kFailed));
  BOOST_TEST((t.results[2].state == ActionState::kFailed));
  BOOST_TEST(t.calls == 1);
  BOOST_TEST(t.executor->waiting() == 0U);
}

BOOST_AUTO_TEST_CASE(orders_beyond_the_limit_fail_at_once) {
  ExecutorCase t;
  for (size_t i = 0; i <= Executor::kWaitingMost; ++i) t.carry_out(order_for(OrderKind::kIsolate));
  t.env.run();
  BOOST_TEST((t.results.back().state == ActionState::kFailed));
  BOOST_TEST(t.results.back().detail == "256 orders are waiting already");
  BOOST_TEST(t.calls == 256);
}

BOOST_AUTO_TEST_CASE(after_a_stop_there_is_no_result_also_once_the_executor_is_destroyed) {
  ExecutorCase t;
  t.carry_out(order_for(OrderKind::kIsolate));
  t.executor->stop();
  t.executor.reset();
  t.env.run();
  BOOST_TEST(t.results.empty());
}

BOOST_AUTO_TEST_SUITE_END()
