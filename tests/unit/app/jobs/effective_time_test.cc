// The effective training time ratio of runs whose lost time is known.
#include "app/jobs/effective_time.h"

#include <boost/test/unit_test.hpp>

namespace culprit::app {
namespace {

constexpr TimeNs kBegin = 1'795'226'400 * kNsPerSecond;

// Steps of a second each, with pauses before some of them.
struct Run {
  std::vector<StepTime> track = {};
  TimeNs at = kBegin;
  Run& pause(int64_t seconds) {
    at += seconds * kNsPerSecond;
    return *this;
  }
  Run& steps(int64_t count, double seconds = 1) {
    for (int64_t i = 0; i < count; ++i) {
      at += static_cast<TimeNs>(seconds * 1e9);
      track.emplace_back(at, track.empty() ? 1 : track.back().second + 1);
    }
    return *this;
  }
  std::optional<double> ratio(TimeNs progressed = kNoTime) const {
    return effective_time_ratio(track, {kBegin, progressed, at});
  }
};

BOOST_AUTO_TEST_SUITE(effective_time)

BOOST_AUTO_TEST_CASE(lost_time_is_what_steps_at_their_pace_do_not_take) {
  const std::pair<Run, double> cases[] = {{Run().steps(100), 1.0},
                                          {Run().pause(100).steps(100), 0.5},  // the way to the first step
                                          {Run().steps(50).pause(100).steps(50), 0.5},    // a stop
                                          {Run().steps(100).pause(300), 0.25},            // it stands now
                                          {Run().steps(100).steps(10, 11), 110.0 / 210},  // slow steps
                                          {Run().steps(60).steps(40, 1.3), 1.0}};         // pace varies
  for (const auto& [run, expected] : cases) {
    const auto got = run.ratio();
    BOOST_REQUIRE(got);
    BOOST_TEST(std::abs(*got - expected) < 0.02, *got << " for " << expected);
  }
}

BOOST_AUTO_TEST_CASE(steps_that_are_done_again_are_lost) {
  Run run = Run().steps(100);
  StepTrack track;
  for (const auto& [at, step] : run.track) track.add(at, step);
  for (int64_t step = 51; step <= 200; ++step) track.add(run.at += kNsPerSecond, step);
  const auto got = effective_time_ratio(track.points(), {kBegin, kNoTime, run.at});
  BOOST_REQUIRE(got);
  BOOST_TEST(std::abs(*got - 200.0 / 250) < 0.02, *got);
}

BOOST_AUTO_TEST_CASE(progress_since_the_last_point_is_not_lost) {
  Run run = Run().steps(100);
  const TimeNs progressed = run.at + 90 * kNsPerSecond;
  run.pause(100);
  BOOST_TEST(run.ratio(progressed).value() > 0.94);
  BOOST_TEST(run.ratio().value() < 0.51);
}

BOOST_AUTO_TEST_CASE(what_is_not_known_is_absent) {
  BOOST_TEST(!Run().ratio());
  BOOST_TEST(!Run().steps(9).ratio(), "too few steps");
  BOOST_TEST(!Run().steps(100, 0).ratio(), "no time passes");
  const std::vector<StepTime> jump = {{kBegin, 1}, {kBegin + 100 * kNsPerSecond, 100}};
  BOOST_TEST(!effective_time_ratio(jump, {kBegin, kNoTime, kBegin + 100 * kNsPerSecond}), "no pace");
  const Run run = Run().steps(100);
  const TimeNs day = 24 * 3600 * kNsPerSecond;
  BOOST_TEST(!effective_time_ratio(run.track, {kBegin + day, kNoTime, run.at + day}), "lines of yesterday");
  BOOST_TEST(!effective_time_ratio(run.track, {kBegin - day, kNoTime, run.at - day}), "lines of tomorrow");
  BOOST_TEST(!effective_time_ratio(run.track, {kNoTime, kNoTime, run.at}));
}

BOOST_AUTO_TEST_CASE(a_long_run_has_bounded_points_and_the_same_ratio) {
  StepTrack track;
  TimeNs at = kBegin;
  for (int64_t step = 0; step < 1'000'000; ++step) {
    if (step == 500'000) at += 1'000'000 * kNsPerSecond;
    track.add(at += kNsPerSecond, step);
  }
  BOOST_TEST(track.points().size() <= 512u);
  BOOST_TEST(track.points().back().second == 999'999);
  const auto got = effective_time_ratio(track.points(), {kBegin, kNoTime, at});
  BOOST_TEST(std::abs(got.value() - 0.5) < 0.01, *got);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::app
