// The controller's questions: how each ends, and what its alert says.
#include "app/daemon/recover/open_questions.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr TimeNs kAskedAt = 1'700'000'000 * kNsPerSecond;

ActionOrder order_for(OrderKind kind, const std::string& target, std::vector<std::string> excluded = {}) {
  ActionOrder out;
  out.decision = "d-0001";
  out.kind = kind;
  out.target = target;
  out.excluded = std::move(excluded);
  return out;
}

recover::Question a_question(const std::string& decision = "d-0001") {
  recover::Question out;
  out.decision = decision;
  out.job = "slurm/77@1";
  out.orders = {order_for(OrderKind::kEndTasks, "77"), order_for(OrderKind::kIsolate, "n2"),
                order_for(OrderKind::kRunAgain, "77", {"n2"})};
  out.expires_ns = kAskedAt + 900 * kNsPerSecond;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(open_questions)

BOOST_AUTO_TEST_CASE(each_question_ends_as_it_was_answered) {
  OpenQuestions all;
  for (const char* decision : {"d-0001", "d-0002", "d-0003", "d-0004"})
    all.ask(a_question(decision), kAskedAt);
  all.answer("d-0001", true, "alice");
  all.answer("d-0001", false, "bob");  // the first one counts
  all.answer("d-0002", false, "bob");
  all.answer("d-0009", true, "bob");  // never asked
  const auto open = [](const std::string& decision) { return decision == "d-0004"; };
  const auto moot = all.settle([](const std::string& d) { return d != "d-0003"; }, kAskedAt + 1);
  BOOST_REQUIRE_EQUAL(moot.size(), 1);
  BOOST_TEST((moot[0].end == alert::End::kMoot));
  const auto ended = all.settle(open, kAskedAt + 2);
  BOOST_REQUIRE_EQUAL(ended.size(), 2);
  BOOST_TEST(question_end(ended[0].end) == "approved");
  BOOST_TEST(ended[0].by == "alice");
  BOOST_TEST(question_end(ended[1].end) == "declined");
  BOOST_TEST(all.open().size() == 1);
  const auto late = all.settle([](const std::string&) { return false; }, kAskedAt + 900 * kNsPerSecond);
  BOOST_TEST(question_end(late.at(0).end) == "unanswered");
  BOOST_TEST(all.ended().size() == 4);
  BOOST_TEST(all.ended().front().decision == "d-0004");
}

BOOST_AUTO_TEST_CASE(an_alert_says_what_would_be_done_and_until_when) {
  const alert::Fault f = alert_of(a_question(), nullptr, "77");
  BOOST_TEST(f.headline == "d-0001 asks to end job 77, isolate n2, run job 77 again without n2");
  BOOST_TEST(f.decision == "d-0001");
  BOOST_TEST(f.answer_by_ns == kAskedAt + 900 * kNsPerSecond);
  BOOST_TEST(f.action == "isolate");
  BOOST_TEST(f.job == "77");
  BOOST_TEST(f.remedy.find("culprit recover approve d-0001") != f.remedy.npos);
  recover::Question returns;
  returns.decision = "d-0002";
  returns.orders = {order_for(OrderKind::kReturn, "n2")};
  BOOST_TEST(alert_of(returns, nullptr, "").headline == "d-0002 asks to return n2");
  BOOST_TEST(alert_of(returns, nullptr, "").hosts.at(0) == "n2");
}

BOOST_AUTO_TEST_SUITE_END()
