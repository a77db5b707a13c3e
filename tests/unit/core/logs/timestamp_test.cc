#include "core/logs/timestamp.h"

#include <boost/test/unit_test.hpp>
#include <string>

namespace culprit::logs {
namespace {

constexpr TimeNs utc(int64_t year, unsigned month, unsigned day, int64_t second_of_day = 0) {
  return (days_from_civil(year, month, day) * 86400 + second_of_day) * kNsPerSecond;
}

TimeNs found(std::string_view line, TimeNs modified = utc(2025, 11, 21), int32_t offset_s = 0) {
  TimestampReader reader(offset_s, modified);
  const Stamp stamp = reader.find(line, 0);
  return stamp.end == 0 ? kNoTime : stamp.time_ns;
}

BOOST_AUTO_TEST_CASE(each_usual_shape_is_found_in_text) {
  const TimeNs expected = utc(2025, 6, 4, 2 * 3600 + 12 * 60 + 9);
  constexpr std::string_view kShapes[] = {
      "2025-06-04 02:12:09",      "2025-06-04T02:12:09Z",    "2025-06-04T04:12:09+02:00",
      "2025-06-03T21:12:09-0500", "2025/06/04 02:12:09",     "2025-06-04-02:12:09",
      "2025-06-04_02:12:09",      "2025-Jun-04 02:12:09",    "25/06/04 02:12:09",
      "06/04/2025 02:12:09",      "06-04 02:12:09",          "06/04-02:12:09",
      "Jun  4 02:12:09",          "Jun 04 02:12:09",         "Jun 4 2025 02:12:09",
      "Wed Jun  4 02:12:09 2025", "04/Jun/2025:02:12:09",    "20250604-02:12:09",
      "20250604 02:12:09",        "2025-06-04 02:12:09 UTC", "2025.06.04 02:12:09",
      "2025-06-04 03:12:09+01:00"};
  for (std::string_view shape : kShapes) {
    BOOST_TEST(found(shape) == expected, shape);
    BOOST_TEST(found("at [" + std::string(shape) + "] it began") == expected, shape);
  }
}

BOOST_AUTO_TEST_CASE(fractions_of_one_to_nine_digits_count) {
  const TimeNs second = utc(2025, 6, 4);
  BOOST_TEST(found("2025-06-04 00:00:00.5") == second + 500'000'000);
  BOOST_TEST(found("2025-06-04 00:00:00,123") == second + 123'000'000);
  BOOST_TEST(found("2025-06-04 00:00:00.123456") == second + 123'456'000);
  BOOST_TEST(found("2025-06-04 00:00:00.123456789Z") == second + 123'456'789);
  BOOST_TEST(found("2025-06-04-00:00:00.166.988") == second + 166'988'000);
}

BOOST_AUTO_TEST_CASE(times_without_a_zone_are_in_the_given_one) {
  BOOST_TEST(found("2025-06-04 08:00:00", utc(2025, 11, 21), 8 * 3600) == utc(2025, 6, 4));
  BOOST_TEST(found("2025-06-04 08:00:00Z", utc(2025, 11, 21), 8 * 3600) == utc(2025, 6, 4, 8 * 3600));
}

BOOST_AUTO_TEST_CASE(a_missing_year_is_the_latest_that_is_not_after_the_file) {
  BOOST_TEST(found("Nov 20 10:00:00") == utc(2025, 11, 20, 36000));
  BOOST_TEST(found("Nov 23 10:00:00") == utc(2024, 11, 23, 36000));
  BOOST_TEST(found("Dec 31 23:59:59", utc(2026, 1, 1, 5)) == utc(2025, 12, 31, 86399));
  BOOST_TEST(found("Jan  1 00:00:01", utc(2026, 1, 1, 5)) == utc(2026, 1, 1, 1));
  BOOST_TEST(found("Feb 29 10:00:00") == utc(2024, 2, 29, 36000));
  // hours ahead of the file: another zone, not another year
  BOOST_TEST(found("Nov 21 08:00:00") == utc(2025, 11, 21, 8 * 3600));
  BOOST_TEST(found("Nov 21 08:00:00", kNoTime) == utc(2024, 11, 21, 8 * 3600));
}

BOOST_AUTO_TEST_CASE(what_is_no_time_is_not_found) {
  constexpr std::string_view kLines[] = {"00:12:09",
                                         "took 00:12:09",
                                         "[01:53<13:12, 113.21s/it]",
                                         "1.2.3",
                                         "10.0.3.7:29500",
                                         "::1",
                                         "a:b::c",
                                         "2026-13-01 00:00:00",
                                         "2026-02-30 00:00:00",
                                         "2026-01-01 24:00:00",
                                         "2026-01-01 00:60:00",
                                         "x2026-01-01 00:00:00",
                                         "2026-01-01",
                                         "1763690000",
                                         "99/99 00:00:00",
                                         "Foo 12 00:00:00",
                                         "run_2026-01-01_00:00:00.log",
                                         "aa:bb:cc:dd:ee:ff",
                                         "00:11:22:33:44:55",
                                         "1602-01-01 00:00:00",
                                         "{\"a\": 1763690000}",
                                         "{\"time\": 12}",
                                         "{\"time\"",
                                         "\"time\": 1763690000"};
  for (std::string_view line : kLines) BOOST_TEST(found(line) == kNoTime, line);
}

BOOST_AUTO_TEST_CASE(keys_of_json_name_times) {
  const TimeNs expected = utc(2025, 11, 21, 60);
  for (std::string_view line :
       {"{\"time\": 1763683260}", "{\"ts\":1763683260.0}", "{\"a\":\"b\",\"timestamp\":\"1763683260\"}",
        "{\"time_ms\": 1763683260000}", "{\"time_ns\":1763683260000000000}",
        "{\"asctime\": \"2025-11-21 00:01:00\"}"})
    BOOST_TEST(found(line) == expected, line);
}

BOOST_AUTO_TEST_CASE(times_far_into_a_line_are_about_something_else) {
  const std::string stamp = "2025-06-04 00:00:00";
  std::string near(200, ' '), far(kTimeWindow, ' ');
  near.append(stamp), far.append(stamp);
  BOOST_TEST(found(near) == utc(2025, 6, 4));
  BOOST_TEST(found(far) == kNoTime);
}

}  // namespace
}  // namespace culprit::logs
