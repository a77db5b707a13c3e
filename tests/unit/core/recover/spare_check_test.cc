// A spare host that fails its check.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "controlled_cluster.h"

using namespace culprit;
using namespace culprit::recover;
using namespace culprit::recover::test;

namespace {

void gives(const std::vector<std::string>& lines, const std::vector<std::string>& wanted) {
  BOOST_TEST(lines == wanted, boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(spare_check)

BOOST_AUTO_TEST_CASE(one_that_fails_is_isolated_by_the_rules_of_every_isolation) {
  const HostChecked failed{"s1", CheckAnswer::kFailed, "2 words of memory differ", true};
  Cluster acts;
  gives(acts.give(HostChecked{"s1", CheckAnswer::kFailed, "disk"}), {});  // no spare, and no doubt about it
  gives(acts.give(failed), {"isolate s1"});
  BOOST_TEST(acts.orders[0].code == "CHECK");
  const ActionOrder isolation = acts.orders[0];
  gives(acts.give(failed), {});  // the order is open
  gives(acts.result(isolation), {});
  BOOST_TEST(!acts.c.machines().find("s1")->op.empty());
  gives(acts.give(HostChecked{"s1", CheckAnswer::kPassed, ""}), {"return s1"});

  Cluster observes(acting(Mode::kObserve));
  gives(observes.give(failed), {});
  BOOST_TEST(observes.noted(NoteKind::kWouldDo, "isolate the spare s1"));

  Cluster asks(acting(Mode::kAsk));
  gives(asks.give(failed), {"ask [isolate s1]"});
  gives(asks.give(failed), {});
  asks.now += 12 * kMin;
  gives(asks.give(Approval{asks.question.decision, true, "ann"}), {"isolate s1"});

  Cluster small(acting(), 4);  // one at a time
  gives(small.give(failed), {"isolate s1"});
  gives(small.give(HostChecked{"s2", CheckAnswer::kFailed, "disk", true}), {});
  BOOST_TEST(small.noted(NoteKind::kRefused, "the breaker is open"));

  Cluster foreign;
  foreign.give(HostSeen{.host = "s1", .out = true, .op = "", .by = "admin", .partition = ""});
  gives(foreign.give(failed), {});
}

BOOST_AUTO_TEST_SUITE_END()
