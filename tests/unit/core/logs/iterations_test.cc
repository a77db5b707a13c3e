#include "core/logs/iterations.h"

#include <boost/test/unit_test.hpp>

#include "core/logs/counter.h"

using namespace culprit;
using namespace culprit::logs;

namespace {
ProgressPoint at(int64_t iteration, TimeNs second, uint64_t line = 0) {
  return {second * kNsPerSecond, iteration, 0, 0, line};
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_loop_may_write_several_lines_a_step) {
  Iterations it;
  for (uint32_t i = 1; i <= 10; ++i)
    for (uint32_t form = 0; form < 6; ++form) {
      ProgressPoint point = at(i, i);
      point.form = form;
      it.progress(0, 1, CounterKind::kNamed, point);
    }
  it.choose();
  BOOST_TEST(it.track().size() == 10);
}

BOOST_AUTO_TEST_CASE(single_lines_that_mention_steps_are_no_loop) {
  Iterations loop, scattered;
  for (uint32_t i = 1; i <= 10; ++i) {
    ProgressPoint point = at(1800 + i, i);
    loop.progress(0, 1, CounterKind::kNamed, point);
    point.form = i;
    scattered.progress(0, 1, CounterKind::kNamed, point);
  }
  loop.choose();
  scattered.choose();
  BOOST_TEST(loop.track().size() == 10);
  BOOST_TEST(scattered.track().empty());
}

BOOST_AUTO_TEST_CASE(the_iteration_under_way_is_reported_by_time) {
  Iterations it;
  for (int i = 1; i <= 20; ++i) it.progress(0, 1, CounterKind::kNamed, at(i, i * 10));
  it.choose();
  BOOST_TEST(it.iteration_at(55 * kNsPerSecond, 0, 0) == 5);
  BOOST_TEST(it.iteration_at(5 * kNsPerSecond, 0, 0) == -1);
  BOOST_TEST(it.median_step_ns() == 10 * kNsPerSecond);
  BOOST_TEST(it.last().iteration == 20);
}

BOOST_AUTO_TEST_CASE(without_times_the_lines_of_the_source_tell) {
  Iterations it;
  for (uint64_t i = 1; i <= 5; ++i)
    it.progress(0, 1, CounterKind::kNamed, {kNoTime, static_cast<int64_t>(i), 3, 0, i * 100});
  it.choose();
  BOOST_TEST(it.iteration_at(kNoTime, 3, 250) == 2);
  BOOST_TEST(it.iteration_at(kNoTime, 3, 50) == -1);
}

BOOST_AUTO_TEST_CASE(a_named_counter_wins_over_a_bar_and_that_over_any_number) {
  Iterations it;
  for (int i = 0; i < 50; ++i) it.progress(0, 7, CounterKind::kCounts, at(i, i));
  for (int i = 0; i < 30; ++i) it.progress(0, 8, CounterKind::kBar, at(i, i));
  for (int i = 0; i < 10; ++i) it.progress(0, 9, CounterKind::kNamed, at(100 + i, i));
  it.choose();
  BOOST_TEST(it.last().iteration == 109);
}

BOOST_AUTO_TEST_CASE(a_number_that_falls_as_often_as_it_rises_counts_nothing) {
  Iterations it;
  for (int i = 0; i < 40; ++i) it.progress(0, 1, CounterKind::kNamed, at(i % 2 ? 5 : 3, i));
  it.choose();
  BOOST_TEST(it.track().empty());
}

BOOST_AUTO_TEST_CASE(an_iteration_with_other_events_is_odd_and_an_ordinary_one_is_not) {
  Iterations it;
  for (int i = 0; i < 40; ++i) {
    for (uint32_t event : {10u, 11u, 12u, 13u}) it.event(0, event);
    if (i == 30)
      for (uint32_t event : {90u, 91u, 92u}) it.event(0, event);
    it.progress(0, 1, CounterKind::kNamed, at(i, i));
  }
  BOOST_REQUIRE(it.odd().size() == 1u);
  BOOST_TEST(it.odd()[0].fresh.size() == 3u);
  BOOST_TEST(it.odd()[0].sigma > 3);
}

BOOST_AUTO_TEST_CASE(a_track_of_many_points_is_thinned_and_still_tells) {
  Iterations it;
  for (int i = 0; i < 100'000; ++i) it.progress(0, 1, CounterKind::kNamed, at(i, i));
  it.choose();
  BOOST_TEST(it.track().size() <= 8192u);
  BOOST_TEST(std::abs(it.iteration_at(50'000 * kNsPerSecond, 0, 0) - 50'000) <= 32);
}

BOOST_AUTO_TEST_CASE(the_last_steps_of_a_long_track_keep_their_own_iterations) {
  for (const int steps : {8192, 8193, 8700, 16'500, 100'000}) {
    Iterations it;
    for (int i = 0; i < steps; ++i) it.progress(0, 1, CounterKind::kNamed, at(i, i));
    it.choose();
    for (int back = 0; back < 500; ++back)
      BOOST_TEST(it.iteration_at((steps - 1 - back) * kNsPerSecond, 0, 0) == steps - 1 - back);
  }
}

BOOST_AUTO_TEST_CASE(the_last_steps_without_times_keep_their_own_iterations) {
  for (const int steps : {8192, 8193, 8194, 12'288, 100'000}) {
    Iterations it;
    for (int i = 0; i < steps; ++i) it.progress(0, 1, CounterKind::kNamed, {kNoTime, i, 0, 0, i + 1u});
    it.choose();
    BOOST_TEST(steps - 1 - it.iteration_at(kNoTime, 0, static_cast<uint64_t>(steps) + 5) <= 1);
  }
}

BOOST_AUTO_TEST_CASE(numbers_without_words_leave_room_for_a_track_with_words) {
  Iterations it;
  for (uint32_t key = 0; key < 1000; ++key) it.progress(0, key, CounterKind::kCounts, at(1, 1));
  for (int i = 0; i < 100; ++i) it.progress(0, 5000, CounterKind::kNamed, at(i, i));
  it.choose();
  BOOST_TEST(it.last().iteration == 99);
}

BOOST_AUTO_TEST_CASE(a_number_that_counts_up_by_equal_steps_is_found_without_words) {
  CounterWatch watch;
  std::optional<int64_t> value;
  for (int i = 0; i < 12; ++i)
    value = watch.see(0, "samples 320 of chunk " + std::to_string(10 * i) + " loss 0.5");
  BOOST_REQUIRE(value.has_value());
  BOOST_TEST(*value == 110);
}

BOOST_AUTO_TEST_CASE(numbers_without_order_are_left_alone_after_a_look) {
  CounterWatch watch;
  uint32_t state = 7;
  for (int i = 0; i < 40; ++i)
    BOOST_TEST(!watch.see(0, "took " + std::to_string((state = state * 1103515245 + 12345) >> 20) + " us")
                    .has_value());
  BOOST_TEST(watch.decided());
  BOOST_TEST(!watch.counts());
}

BOOST_AUTO_TEST_CASE(what_its_bounds_leave_out_is_counted) {
  Iterations it;
  for (uint32_t key = 0; key < 300; ++key) it.progress(0, key, CounterKind::kCounts, {0, 1, 0, 1});
  BOOST_TEST(it.drops()[Drop::kTracks] == 108u);  // 192 without words
  for (uint32_t writer = 0; writer < 500'010; ++writer)
    it.progress(writer, 0, CounterKind::kCounts, {0, 1, 0, 1});
  BOOST_TEST(it.drops()[Drop::kTrackWriters] == 201u);  // the other 191 tracks had one writer each
}
