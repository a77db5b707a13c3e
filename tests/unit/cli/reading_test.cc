#include "cli/reading.h"

#include <boost/test/unit_test.hpp>

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
  for (const char* text : {"", "yesterday", "@x", "25:61", "2026-13-40"}) {
    const auto time = parse_time(text, 0);
    BOOST_TEST_CONTEXT(text) BOOST_TEST(!time.has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_zone_that_is_none_is_refused) {
  ReadingOptions options;
  for (const char* zone : {"", "Mars/Olympus", "../../etc/passwd"}) {
    options.timezone = zone;
    BOOST_TEST(!resolve(options).has_value());
  }
  options.timezone = "+05:30";
  BOOST_REQUIRE(resolve(options).has_value());
  BOOST_TEST(options.utc_offset_s == 19'800);
}
