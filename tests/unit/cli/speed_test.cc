#include "cli/speed.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

using namespace culprit;
using namespace culprit::cli;

namespace {

// `n` points whose steps last `ms` with noise; from point `from` on `later` times as long.
ProgressPoints run(size_t n, double ms, double noise, unsigned seed, size_t from = 0, double later = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> factor(0, noise);
  ProgressPoints out;
  TimeNs at = 1'700'000'000 * kNsPerSecond;
  for (size_t i = 0; i < n; ++i) {
    out.emplace_back(at, static_cast<int64_t>(10 * i));
    const double step = ms * std::exp(factor(random)) * (from > 0 && i >= from ? later : 1);
    at += static_cast<TimeNs>(10 * step * 1e6);
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(speed)

BOOST_AUTO_TEST_CASE(no_difference_is_claimed_from_noise) {
  size_t claimed = 0, points = 0;
  for (unsigned seed = 1; seed <= 200; ++seed)
    for (const double noise : {0.01, 0.1, 0.4}) {
      const Pace a = pace_of(run(200, 500, noise, 2 * seed)), b = pace_of(run(200, 500, noise, 2 * seed + 1));
      claimed += compare(a, b)->different;
      points += change_point(a).has_value();
    }
  BOOST_TEST(claimed == 0u);
  BOOST_TEST(points == 0u);
}

BOOST_AUTO_TEST_CASE(a_slower_run_is_shown_with_its_factor) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const auto change = compare(pace_of(run(200, 500, 0.05, seed)), pace_of(run(200, 600, 0.05, seed + 100)));
    BOOST_TEST(change->different);
    BOOST_TEST(std::abs(change->ratio - 1.2) < 0.05);
    BOOST_TEST(change->effect > 0.9);
  }
  BOOST_TEST(compare(pace_of(run(200, 600, 0.05, 1)), pace_of(run(200, 500, 0.05, 2)))->ratio < 0.9);
}

BOOST_AUTO_TEST_CASE(the_point_of_change_is_found) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const auto at = change_point(pace_of(run(300, 500, 0.05, seed, 180, 1.3)));
    BOOST_REQUIRE(at);
    BOOST_TEST(std::abs(static_cast<double>(at->iteration) - 1800) <= 150, at->iteration);
    BOOST_TEST(std::abs(at->change.ratio - 1.3) < 0.1);
  }
}

BOOST_AUTO_TEST_CASE(too_little_and_odd_progress_say_nothing) {
  BOOST_TEST(!compare(pace_of({}), pace_of(run(200, 500, 0.1, 1))));
  BOOST_TEST(!compare(pace_of(run(10, 500, 0.1, 1)), pace_of(run(200, 500, 0.1, 1))));
  BOOST_TEST(!change_point(pace_of(run(10, 500, 0.1, 1))));
  BOOST_TEST(pace_of({{5, 9}, {5, 10}, {4, 11}, {9, 3}}).step_ms.empty());
}

BOOST_AUTO_TEST_SUITE_END()
