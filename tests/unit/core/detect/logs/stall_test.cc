// A stop that may be no hang: an announced phase, and the first step of a job.
#include "core/detect/logs/stall.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::detect;

BOOST_AUTO_TEST_SUITE(stall)

namespace {

constexpr TimeNs kS = kNsPerSecond;

struct Fixture {
  Fixture() { log.settle(); }
  bool excused(TimeNs now) const { return watch.excused(log, StallOptions{}, now); }

  logs::JobLog log{JobFile{}};
  ProgressWatch watch;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_first_step_may_take_minutes, Fixture) {
  watch.moves(1000 * kS);
  watch.moves(1020 * kS);
  BOOST_TEST(excused(1400 * kS));
  BOOST_TEST(!excused(2000 * kS));
}

BOOST_FIXTURE_TEST_CASE(a_job_that_worked_for_long_is_past_its_first_step, Fixture) {
  for (TimeNs at = 1000; at < 1200; at += 10) watch.moves(at * kS);
  BOOST_TEST(!excused(1400 * kS));
}

BOOST_FIXTURE_TEST_CASE(a_job_with_finished_steps_is_past_its_first_step, Fixture) {
  for (int64_t step = 1; step < 4; ++step) watch.beat({step, 0}, (1000 + step) * kS);
  BOOST_TEST(!excused(1100 * kS));
}

BOOST_FIXTURE_TEST_CASE(an_announced_phase_is_excused_until_it_ends, Fixture) {
  for (int64_t step = 1; step < 4; ++step) watch.beat({step, 0}, (1000 + step) * kS);
  watch.phase({"evaluation", true, 0}, 1010 * kS);
  BOOST_TEST(excused(1600 * kS));
  watch.phase({"evaluation", false, 0}, 1600 * kS);
  BOOST_TEST(!excused(1700 * kS));
}

BOOST_AUTO_TEST_SUITE_END()
