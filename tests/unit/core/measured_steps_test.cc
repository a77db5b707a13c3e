// What the steps of the training's own numbers tell: the job's pace, and that it went on.
#include "core/measured_steps.h"

#include <boost/test/unit_test.hpp>

namespace culprit::core {
namespace {

constexpr TimeNs kStart = 1'763'690'000 * kNsPerSecond;

// Steps of a second, and of `later` from step 30 on.
MeasuredSteps steps_with(double later) {
  MeasuredSteps out;
  TimeNs at = kStart;
  for (int64_t step = 0; step < 60; ++step) {
    at += static_cast<TimeNs>((step < 30 ? 1 : later) * kNsPerSecond);
    for (int rank = 0; rank < 4; ++rank) out.add(step, at + rank);
  }
  return out;
}

Finding line(TimeNs at) {
  Finding f;
  f.kind = FindingKind::kFault;
  f.role = FindingRole::kRoot;
  f.as_kernel = true;
  f.first_ns = f.last_ns = at;
  f.subjects.push_back({"a", {}, {}, {}, 0.5});
  return f;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(measured_steps)

BOOST_AUTO_TEST_CASE(a_pace_that_changes_for_good_is_told_with_its_step) {
  BOOST_TEST(!steps_with(1).slower_pace());
  const auto slower = steps_with(1.5).slower_pace();
  BOOST_REQUIRE(slower.has_value());
  BOOST_TEST(slower->iteration == 29);
  BOOST_TEST((pace_finding(*slower, kStart).kind == FindingKind::kSupport));
}

BOOST_AUTO_TEST_CASE(steps_after_a_line_of_a_kernel_show_that_the_job_survived_it) {
  const MeasuredSteps steps = steps_with(1);
  std::vector<Finding> signs = {line(kStart + 20 * kNsPerSecond), line(kStart + 59 * kNsPerSecond)},
                       witnesses;
  signs.push_back(line(kStart + 20 * kNsPerSecond));
  signs.back().fatal = true;
  drop_outlived(steps, kStart + 90 * kNsPerSecond, signs, witnesses);
  BOOST_REQUIRE_EQUAL(witnesses.size(), 1u);
  BOOST_TEST((witnesses[0].kind == FindingKind::kSupport));
  BOOST_TEST(witnesses[0].subjects[0].strength == 0);
  BOOST_TEST(signs.size() == 2u);  // one at the end, and one that is fatal
}

BOOST_AUTO_TEST_CASE(a_line_without_a_time_stopped_nothing_where_steps_go_on_until_the_logs_end) {
  const auto retained = [](TimeNs log_end) {
    std::vector<Finding> signs = {line(kNoTime)}, witnesses;
    drop_outlived(steps_with(1), log_end, signs, witnesses);
    return signs.size();
  };
  BOOST_TEST(retained(kStart + 61 * kNsPerSecond) == 0u);
  BOOST_TEST(retained(kStart + 90 * kNsPerSecond) == 1u);
  BOOST_TEST(retained(kNoTime) == 1u);
}

BOOST_AUTO_TEST_CASE(a_restart_begins_a_new_series_and_a_late_row_does_not) {
  MeasuredSteps steps = steps_with(1);
  steps.add(10, kStart + 30 * kNsPerSecond);
  BOOST_TEST(steps.after(kStart) == 60u);
  steps.add(10, kStart + 100 * kNsPerSecond);
  BOOST_TEST(steps.after(kStart) == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::core
