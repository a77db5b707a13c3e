#include "cli/status.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::cli;

BOOST_AUTO_TEST_SUITE(status)

BOOST_AUTO_TEST_CASE(the_first_line_says_what_is_wrong_with_the_way_to_the_collector) {
  const auto text = [](const char* sentence) {
    Json json = {{"version", "1"}, {"host", "h"},     {"role", "agent"},
                 {"health", "ok"}, {"started_ns", 0}, {"forward", {{"sentence", sentence}, {"trouble", ""}}}};
    return status_text(json, Zone(), false);
  };
  const std::string away = text("not connected: c:1: refused\x1b");
  BOOST_TEST(away.substr(0, away.find('\n')).ends_with(R"(: ok; forward: not connected: c:1: refused\x1b)"),
             away);
  const std::string well = text("connected");
  BOOST_TEST(well.substr(0, well.find('\n')).ends_with(": ok"), well);
  // An empty value has no row.
  BOOST_TEST((well.find("forward.sentence") != well.npos && well.find("forward.trouble") == well.npos), well);
}

BOOST_AUTO_TEST_SUITE_END()
