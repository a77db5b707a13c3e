// How many idle hosts a job needs.
#include "core/recover/standby.h"

#include <boost/test/unit_test.hpp>

using namespace culprit::recover;

BOOST_AUTO_TEST_SUITE(standby)

BOOST_AUTO_TEST_CASE(byterobusts_numbers_of_spares_follow_from_one_rate) {
  const std::pair<uint32_t, uint32_t> kSpares[] = {{128, 2}, {256, 2}, {512, 3}, {1024, 4}};
  for (const auto& [hosts, spares] : kSpares)
    BOOST_TEST(plan_standbys(hosts, 0.0012, 1, 0.99).spares == spares, hosts);
}

BOOST_AUTO_TEST_CASE(the_quantile_is_the_smallest_number_that_holds_its_share) {
  BOOST_TEST(binomial_quantile(10, 0, 0.99) == 0u);
  BOOST_TEST(binomial_quantile(10, 1, 0.99) == 10u);
  BOOST_TEST(binomial_quantile(2, 0.5, 0.75) == 1u);
  BOOST_TEST(binomial_quantile(2, 0.5, 0.76) == 2u);
  BOOST_TEST(binomial_above(2, 0.5, 0) == 0.75, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(binomial_quantile(100'000, 0.01, 0.99) > 1000u);
}

BOOST_AUTO_TEST_CASE(the_interval_of_a_rate_is_that_of_a_poisson_count) {
  // Exact limits of counts: 0 to 3.689, .0253 to 5.572 and 4.795 to 18.39.
  const FailureRate none = failure_rate(0, 10), one = failure_rate(1, 10), ten = failure_rate(10, 10);
  BOOST_TEST(none.low == 0);
  BOOST_TEST(none.high == 0.3689, boost::test_tools::tolerance(1e-3));
  BOOST_TEST(one.low == 0.00253, boost::test_tools::tolerance(1e-2));
  BOOST_TEST(one.high == 0.5572, boost::test_tools::tolerance(1e-3));
  BOOST_TEST(ten.rate == 1);
  BOOST_TEST(ten.low == 0.4795, boost::test_tools::tolerance(1e-3));
  BOOST_TEST(ten.high == 1.839, boost::test_tools::tolerance(1e-3));
  BOOST_TEST(failure_rate(3, 0).rate == 0);
}

BOOST_AUTO_TEST_CASE(spares_cost_what_they_idle_and_save_the_wait) {
  const StandbyPlan plan = plan_standbys(256, 0.001, 1, 0.99);
  BOOST_TEST(plan.wait_after_day < 24 * 0.01);
  BOOST_TEST(plan.wait_before_day > 5.0);
  BOOST_TEST(plan.idle_hours_day < 24.0 * plan.spares);
  BOOST_TEST(plan.idle_hours_day > 24.0 * (plan.spares - plan.out_mean) - 1);
  BOOST_TEST(plan_standbys(256, 0, 1, 0.99).spares == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
