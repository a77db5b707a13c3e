// The rate of failures that `culprit standby plan` reads off the controller's ledger.
#include "cli/standby.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::cli;

namespace {

constexpr TimeNs kStandbyDay = 24LL * 3600 * kNsPerSecond;
constexpr TimeNs kStandbyNow = 1'700'000'000 * kNsPerSecond;

Json standby_hosts(size_t count) {
  Json out = {{"items", Json::array()}};
  for (size_t i = 0; i < count; ++i) out["items"].push_back({{"host", "n" + std::to_string(i)}});
  return out;
}

// The first attempt began ten days ago.
const Json kStandbyCost = {{"items",
                            {{{"job", "2"}, {"last_ns", kStandbyNow - kStandbyDay}, {"wall_s", 9.0 * 86'400}},
                             {{"job", "1"}, {"last_ns", kStandbyNow}, {"wall_s", 86'400.0}}}}};

}  // namespace

BOOST_AUTO_TEST_SUITE(standby_plan)

BOOST_AUTO_TEST_CASE(isolations_since_the_first_attempt_count_once_a_host) {
  const TimeNs recent = kStandbyNow - 2 * kStandbyDay;
  const TimeNs old = kStandbyNow - 20 * kStandbyDay;
  Json machines = {{"items", Json::array()}};
  machines["items"].push_back({{"host", "n1"}, {"device", ""}, {"isolations", {recent, old}}});
  machines["items"].push_back({{"host", "n1"}, {"device", "gpu3"}, {"isolations", Json::array({recent})}});
  machines["items"].push_back({{"host", "n2"}, {"isolations", {recent, recent + kStandbyDay}}});
  const StandbyLedger ledger = standby_ledger(machines, kStandbyCost, standby_hosts(8), kStandbyNow);
  BOOST_TEST(ledger.rate.failures == 3u);
  BOOST_TEST(ledger.rate.host_days == 80, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(ledger.rate.rate == 3.0 / 80, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_ledger_without_an_attempt_gives_no_rate) {
  for (const Json& odd : {Json(), Json::object(), Json{{"items", 3}}, Json{{"items", {1, nullptr, "x"}}}}) {
    const StandbyLedger ledger = standby_ledger(odd, odd, odd, kStandbyNow);
    BOOST_TEST(ledger.since_ns == kNoTime);
    BOOST_TEST(ledger.rate.rate == 0);
  }
}

BOOST_AUTO_TEST_CASE(few_failures_show_their_interval_and_the_option) {
  StandbyQuestion q;
  q.hosts = 256;
  q.known = recover::failure_rate(2, 2000);
  q.rate = q.known.rate;
  const std::string text = standby_text(q);
  BOOST_TEST((text.find("so few failures say little") != text.npos), text);
  BOOST_TEST((text.find("spares = ") != text.npos), text);
  BOOST_TEST((standby_json(q).find("\"spares_high\":") != std::string::npos));
}

BOOST_AUTO_TEST_SUITE_END()
