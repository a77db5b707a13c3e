// Metrics as Prometheus reads them.
#include "serve/metrics.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace culprit::serve {
namespace {

std::string sample() {
  MetricsText text;
  text.gauge("culprit_build_info", "Its version.").value(1, {{"version", "0.1.0"}});
  text.counter("culprit_lines_total", "Lines\ntaken \\ from \"sources\".")
      .value(12345678901234, {{"source", "file"}})
      .value(0.5, {{"source", "a\"b\\c\nd \xff"}, {"kind", ""}});
  text.gauge("culprit_lag_seconds", "How far behind.").value(std::nan("")).value(-INFINITY, {{"x", "y"}});
  const double bounds[] = {0.001, 0.01, 1};
  const uint64_t counts[] = {5, 0, 2, 1};
  text.histogram("culprit_turn_seconds", "Turns of the loop.")
      .value({bounds, counts, 2.75})
      .value({bounds, counts, 1}, {{"room", "store"}});
  return text.finish();
}

BOOST_AUTO_TEST_CASE(the_text_is_prometheus_0_0_4) {
  BOOST_CHECK_EQUAL(sample(),
                    R"(# HELP culprit_build_info Its version.
# TYPE culprit_build_info gauge
culprit_build_info{version="0.1.0"} 1
# HELP culprit_lines_total Lines\ntaken \\ from "sources".
# TYPE culprit_lines_total counter
culprit_lines_total{source="file"} 12345678901234
culprit_lines_total{source="a\"b\\c\nd )"
                    "\xef\xbf\xbd"
                    R"(",kind=""} 0.5
# HELP culprit_lag_seconds How far behind.
# TYPE culprit_lag_seconds gauge
culprit_lag_seconds NaN
culprit_lag_seconds{x="y"} -Inf
# HELP culprit_turn_seconds Turns of the loop.
# TYPE culprit_turn_seconds histogram
culprit_turn_seconds_bucket{le="0.001"} 5
culprit_turn_seconds_bucket{le="0.01"} 5
culprit_turn_seconds_bucket{le="1"} 7
culprit_turn_seconds_bucket{le="+Inf"} 8
culprit_turn_seconds_sum 2.75
culprit_turn_seconds_count 8
culprit_turn_seconds_bucket{room="store",le="0.001"} 5
culprit_turn_seconds_bucket{room="store",le="0.01"} 5
culprit_turn_seconds_bucket{room="store",le="1"} 7
culprit_turn_seconds_bucket{room="store",le="+Inf"} 8
culprit_turn_seconds_sum{room="store"} 1
culprit_turn_seconds_count{room="store"} 8
)");
}

BOOST_AUTO_TEST_CASE(promtool_finds_nothing_wrong) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
    BOOST_TEST_MESSAGE("passed over: promtool is not installed");
    return;
  }
  FILE* promtool = popen("promtool check metrics", "w");
  BOOST_REQUIRE(promtool);
  const std::string text = sample();
  BOOST_CHECK_EQUAL(fwrite(text.data(), 1, text.size(), promtool), text.size());
  BOOST_CHECK_EQUAL(pclose(promtool), 0);
}

}  // namespace
}  // namespace culprit::serve
