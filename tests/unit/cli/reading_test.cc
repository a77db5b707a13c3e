#include "cli/reading.h"

#include <boost/test/unit_test.hpp>

#include "cli/zone.h"

using namespace culprit;
using namespace culprit::cli;

BOOST_AUTO_TEST_CASE(times_on_the_command_line_are_read_in_the_usual_shapes) {
  constexpr TimeNs kTwo = 1'795'226'400LL * kNsPerSecond;  // 2026-11-21 02:00 UTC
  const struct {
    const char* text;
    int32_t offset;
    TimeNs time;
  } rows[] = {{"2026-11-21T02:00", 0, kTwo},
              {"2026-11-21 02:00:00", 0, kTwo},
              {"2026-11-21T02:00:00Z", 7200, kTwo},
              {"2026-11-21 04:00", 7200, kTwo},
              {"2026-11-21", 0, kTwo - 7200 * kNsPerSecond},
              {"@1795226400", 7200, kTwo}};
  for (const auto& row : rows) {
    BOOST_TEST_CONTEXT(row.text) {
      const auto time = parse_time(row.text, row.offset);
      BOOST_REQUIRE(time.has_value());
      BOOST_TEST(*time == row.time);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_time_is_refused_by_name) {
  for (const char* text :
       {"", "yesterday", "@x", "@99999999999999", "@-99999999999999", "-2h", "25:61", "2026-13-40"}) {
    const auto time = parse_time(text, 0);
    BOOST_TEST_CONTEXT(text) BOOST_TEST(!time.has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_zone_that_is_none_is_refused) {
  ReadingOptions options;
  for (const char* zone : {"", "Mars/Olympus", "../../etc/passwd", "Europe", "tzdata.zi"}) {
    options.timezone = zone;
    BOOST_TEST(!resolve(options).has_value());
  }
  options.timezone = "+05:30";
  BOOST_REQUIRE(resolve(options).has_value());
  BOOST_TEST(options.diagnose.parse.zone.offset_at(0) == 19'800);
}

BOOST_AUTO_TEST_CASE(a_named_zone_has_the_offset_of_each_date) {
  const auto berlin = zone_named("Europe/Berlin");
  BOOST_REQUIRE(berlin.has_value());
  const std::pair<TimeNs, int32_t> rows[] = {
      {1'768'435'200, 3600}, {1'774'745'999, 3600}, {1'774'746'000, 7200}, {1'784'073'600, 7200},
      {2'520'936'000, 3600}, {2'534'155'200, 7200}};  // 2049-11, 2050-04: beyond what the database lists
  for (const auto& [seconds, offset] : rows)
    BOOST_TEST_CONTEXT(seconds) BOOST_TEST(berlin->offset_at(seconds * kNsPerSecond) == offset);
}
