#include "app/offline/job_slices.h"

#include <boost/test/unit_test.hpp>

#include "../fixtures.h"

using namespace culprit;
using namespace culprit::app;
using culprit::app::test::Folder;

BOOST_AUTO_TEST_SUITE(job_slices)

// A clock that shows 1970 until it is set, or is years ahead, must not make a job years long.
BOOST_AUTO_TEST_CASE(gaps_of_more_than_an_hour_are_an_hour) {
  struct Case {
    const char* lines;
    std::vector<int64_t> minutes;  // of the steps, since the first line
  };
  const Case cases[] = {
      {"2026-11-20 10:00:10 a\n2026-11-20 10:05:10 b\n2026-11-20 10:50:10 c\n", {0, 5, 50}},
      {"1970-01-01 00:00:10 a\n2026-11-20 10:00:10 b\n2026-11-20 10:05:10 c\n", {0, 60, 65}},
      {"2026-11-20 10:00:10 a\n2026-11-20 16:00:10 b\n2031-11-20 10:00:10 c\n", {0, 60, 120}},
      {"no time\n", {0}},
  };
  for (const Case& c : cases) {
    const Folder folder;
    folder.write("node-0.log", c.lines);
    const auto job = slice_job(folder.path.string(), 60 * kNsPerSecond);
    BOOST_REQUIRE(job.has_value());
    std::vector<int64_t> minutes;
    for (const auto& [when, slices] : job->slices) minutes.push_back(when.first);
    BOOST_TEST(minutes == c.minutes);
  }
}

BOOST_AUTO_TEST_SUITE_END()
