#include "core/detect/comm/announced.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;

BOOST_AUTO_TEST_CASE(a_phase_covers_the_rank_that_announced_it_until_its_end) {
  comm::Announced phases;
  const TimeNs s = kNsPerSecond;
  phases.add(0, "evaluation", true, 10 * s);
  BOOST_TEST(phases.covers(0, 60 * s, 61 * s));
  phases.add(0, "evaluation", false, 20 * s);
  BOOST_TEST(phases.covers(0, 19 * s, 25 * s));
  BOOST_TEST(!phases.covers(0, 21 * s, 25 * s));
  BOOST_TEST(!phases.covers(1, 12 * s, 13 * s));
  BOOST_TEST(!phases.covers(0, 3 * s, 5 * s));
}

BOOST_AUTO_TEST_CASE(a_phase_without_a_time_is_passed_over) {
  comm::Announced phases;
  phases.add(0, "checkpoint", true, kNoTime);
  BOOST_TEST(!phases.covers(0, 0, 100 * kNsPerSecond));
}
