// When spares are checked, and which of their answers are reported.
#include "app/daemon/recover/spare_checks.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

using namespace culprit;
using namespace culprit::app;
using SpareAnswer = recover::CheckAnswer;

namespace {

using Hosts = std::vector<std::string>;
constexpr TimeNs kSparesHour = 3600 * kNsPerSecond;

struct Pool {
  SpareChecks checks;
  Hosts spares = {"n5", "n6"};
  TimeNs now = 1000 * kSparesHour;
  Hosts due(TimeNs later = 0) { return checks.due(spares, 6 * kSparesHour, now += later); }
  std::string answer(const std::string& host, SpareAnswer what, const std::string& why = "why") {
    const auto taken = checks.answered({host, what, why}, now);
    return (taken.is_spare ? "spare " : "other ") + taken.note;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(spare_checks)

BOOST_AUTO_TEST_CASE(each_spare_is_checked_at_its_arrival_and_after_six_hours) {
  Pool pool;
  BOOST_TEST(pool.due() == (Hosts{"n5", "n6"}));
  BOOST_TEST(pool.due(kSparesHour).empty());  // no answer yet
  BOOST_TEST(pool.answer("n5", SpareAnswer::kPassed) == "spare ");
  BOOST_TEST(pool.answer("n6", SpareAnswer::kPassed) == "spare ");
  BOOST_TEST(pool.answer("n6", SpareAnswer::kPassed) == "other ");  // asked for by a person
  pool.spares.push_back("n7");
  BOOST_TEST(pool.due(kSparesHour) == (Hosts{"n7"}));
  BOOST_TEST(pool.due(5 * kSparesHour) == (Hosts{"n5", "n6"}));
}

BOOST_AUTO_TEST_CASE(no_answer_is_reported_once_and_asked_for_again) {
  Pool pool;
  pool.spares = {"n5"};
  const std::string off = "check.enabled is off";
  (void)pool.due();
  BOOST_TEST(pool.answer("n5", SpareAnswer::kNoAnswer, off) ==
             "spare the spare n5 is not checked, so its state is unknown: check.enabled is off");
  BOOST_TEST(pool.due(SpareChecks::kFirstDelay - 1).empty());
  BOOST_TEST(pool.due(1) == (Hosts{"n5"}));
  BOOST_TEST(pool.answer("n5", SpareAnswer::kNoAnswer, off) == "spare ");
  BOOST_TEST(pool.due(SpareChecks::kFirstDelay).empty());  // the wait doubles
  BOOST_TEST(pool.due(SpareChecks::kFirstDelay) == (Hosts{"n5"}));
}

BOOST_AUTO_TEST_CASE(a_spare_that_left_the_pool_is_forgotten) {
  Pool pool;
  (void)pool.due();
  pool.answer("n5", SpareAnswer::kFailed);
  BOOST_TEST(pool.checks.failed() == (Hosts{"n5"}));
  pool.spares = {"n6"};
  BOOST_TEST(pool.due().empty());
  BOOST_TEST(pool.checks.failed().empty());
  pool.spares = {"n5", "n6"};
  BOOST_TEST(pool.due() == (Hosts{"n5"}));
}

BOOST_AUTO_TEST_CASE(no_more_than_a_few_checks_run_at_once_and_none_where_they_are_off) {
  Pool pool;
  for (int i = 0; i < 20; ++i) pool.spares.push_back("m" + std::to_string(i));
  BOOST_TEST(pool.due().size() == SpareChecks::kAtOnce);
  BOOST_TEST(pool.due().empty());
  pool.answer("n5", SpareAnswer::kPassed);
  BOOST_TEST(pool.due().size() == 1U);
  BOOST_TEST(Pool().checks.due({"n5"}, 0, kSparesHour).empty());
}

BOOST_AUTO_TEST_SUITE_END()
