#include "app/jobs/capture_times.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_SUITE(capture_times)

namespace {

constexpr TimeNs kS = kNsPerSecond;

}  // namespace

BOOST_AUTO_TEST_CASE(a_stop_is_captured_at_once_and_then_at_intervals) {
  CaptureTimes times;
  const CapturePlan plan{3, 10 * kS};
  std::vector<TimeNs> at;
  for (TimeNs now = 100 * kS; now < 200 * kS; now += kS)
    if (times.due(true, plan, now)) at.push_back(now / kS);
  BOOST_TEST(at == (std::vector<TimeNs>{100, 110, 120}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_job_that_went_on_counts_anew) {
  CaptureTimes times;
  const CapturePlan plan{2, 10 * kS};
  BOOST_TEST(*times.due(true, plan, 100 * kS) == 1u);
  BOOST_TEST(*times.due(true, plan, 110 * kS) == 2u);
  BOOST_TEST(!times.due(true, plan, 120 * kS));
  BOOST_TEST(!times.due(false, plan, 130 * kS));
  BOOST_TEST(*times.due(true, plan, 131 * kS) == 1u);
}

BOOST_AUTO_TEST_CASE(a_clock_that_was_set_back_delays_nothing) {
  CaptureTimes times;
  const CapturePlan plan{2, 10 * kS};
  BOOST_TEST(*times.due(true, plan, 1000 * kS) == 1u);
  BOOST_TEST(*times.due(true, plan, 10 * kS) == 2u);
}

BOOST_AUTO_TEST_CASE(without_samples_nothing_is_captured) {
  CaptureTimes times;
  BOOST_TEST(!times.due(true, {0, 10 * kS}, 100 * kS));
}

BOOST_AUTO_TEST_SUITE_END()
