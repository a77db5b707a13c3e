// The promises of `culprit replay judge` on simulated replays.
#include "sim/replay/replay_study.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::sim;

namespace {

ReplayRow study_of(const ReplayCase& of, uint32_t trials, uint64_t seed = 1) {
  ReplayStudy study;
  study.cases = {of};
  study.trials = trials;
  study.seed = seed;
  return run_replay_study(study)->front();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(replay_study)

BOOST_AUTO_TEST_CASE(a_seed_gives_the_same_numbers) {
  const ReplayRow a = study_of({16, 4, 2, 0.3}, 10), b = study_of({16, 4, 2, 0.3}, 10);
  BOOST_TEST(a.posterior.rounds == b.posterior.rounds);
  BOOST_TEST(a.posterior.found == b.posterior.found);
  BOOST_TEST(a.intersection.innocent == b.intersection.innocent);
}

BOOST_AUTO_TEST_CASE(hosts_that_always_fail_are_found_within_few_rounds_and_no_innocent_one_is_held) {
  for (const uint32_t faults : {1u, 2u}) {
    const ReplayRow row = study_of({64, 8, faults, 1}, 40);
    BOOST_TEST(row.posterior.found >= 39u);
    BOOST_TEST(row.posterior.innocent <= 1u);
    BOOST_TEST(row.posterior.rounds <= 40u * (faults == 1 ? 3 : 4));
    BOOST_TEST(row.posterior.innocent <= row.intersection.innocent);
  }
}

BOOST_AUTO_TEST_CASE(a_fault_that_comes_and_goes_is_found_where_the_intersection_misses_it) {
  const ReplayRow row = study_of({64, 8, 1, 0.3}, 30);
  BOOST_TEST(row.posterior.found >= 28u);
  BOOST_TEST(row.posterior.first_wrong <= 1u);
  BOOST_TEST(row.intersection.found <= 10u);
  BOOST_TEST(row.posterior.innocent < row.repeated.innocent);
}

BOOST_AUTO_TEST_CASE(without_a_host_at_fault_hardly_any_is_named) {
  const ReplayRow row = study_of({64, 8, 0, 1}, 20);
  BOOST_TEST(row.posterior.innocent <= 1u);
}

BOOST_AUTO_TEST_SUITE_END()
