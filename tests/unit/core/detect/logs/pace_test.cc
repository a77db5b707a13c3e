// The pace of a job: a lasting change is found; spikes and scatter are not reported.
#include "core/detect/logs/pace.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using culprit::detect::find_slower_pace;
using culprit::logs::ProgressPoint;

namespace {

constexpr TimeNs kStamp = kNsPerSecond;

// Steps of `ms` each; with `seconds` the times are whole seconds.
std::vector<ProgressPoint> track_of(const std::vector<int>& ms, bool seconds = false) {
  std::vector<ProgressPoint> track;
  TimeNs now = 1000 * kNsPerSecond;
  for (size_t i = 0; i < ms.size(); ++i) {
    now += ms[i] * kNsPerMs;
    ProgressPoint point;
    point.time_ns = seconds ? now / kStamp * kStamp : now;
    point.iteration = static_cast<int64_t>(i);
    point.line = i + 1;
    track.push_back(point);
  }
  return track;
}

// A scatter of a tenth, the same in each run.
int scattered(int ms, size_t i) { return ms * (95 + static_cast<int>(i * 7 % 11)) / 100; }

std::vector<int> steps(size_t before, int ms, size_t after, int later_ms) {
  std::vector<int> out;
  for (size_t i = 0; i < before; ++i) out.push_back(scattered(ms, i));
  for (size_t i = 0; i < after; ++i) out.push_back(scattered(later_ms, i));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_lasting_slower_pace_is_found_where_it_begins) {
  const auto slower = find_slower_pace(track_of(steps(60, 2000, 40, 3000)));
  BOOST_REQUIRE(slower.has_value());
  BOOST_TEST(std::abs(slower->iteration - 60) <= 2);
  BOOST_TEST(slower->factor() > 1.4);
  BOOST_TEST(slower->factor() < 1.6);
}

BOOST_AUTO_TEST_CASE(stamps_of_whole_seconds_hide_no_slower_pace) {
  BOOST_TEST(find_slower_pace(track_of(steps(200, 1100, 100, 1500), true)).has_value());
}

BOOST_AUTO_TEST_CASE(a_job_of_one_pace_is_not_slower) {
  std::vector<int> spikes = steps(100, 2000, 0, 0);
  for (size_t i = 50; i < spikes.size(); i += 10) spikes[i] = 30'000;  // evaluations begin
  std::vector<int> spell = steps(50, 2000, 20, 4000);
  for (size_t i = 0; i < 60; ++i) spell.push_back(2000);
  const std::pair<const char*, std::vector<int>> kCases[] = {{"even", steps(100, 2000, 0, 0)},
                                                             {"evaluations", spikes},
                                                             {"a spell that is over", spell},
                                                             {"slightly slower", steps(60, 2000, 40, 2080)},
                                                             {"faster", steps(60, 2000, 40, 1500)},
                                                             {"few steps", steps(6, 2000, 4, 4000)},
                                                             {"none", {}}};
  for (const auto& [name, ms] : kCases) BOOST_TEST(!find_slower_pace(track_of(ms)).has_value(), name);
}
