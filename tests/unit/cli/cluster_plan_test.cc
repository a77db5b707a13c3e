// What a site needs, computed by hand, and that the document has the constants of the code.
#include "cli/cluster_plan.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

using namespace culprit;
using namespace culprit::cli;

BOOST_AUTO_TEST_SUITE(plan_of_a_cluster)

namespace {

constexpr double kSmall = 1e-6;

PlanSite site_of(double hosts) {
  PlanSite out;
  out.hosts = hosts;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_hundred_thousand_hosts_are_as_computed_by_hand) {
  const ClusterPlan p = plan_of(site_of(100'000), kTalkative);
  // 31 + 50 µs of CPU in a second: .7 of a core carries 8,641 hosts, so 12 collectors and one more.
  BOOST_TEST(p.collectors == 13);
  BOOST_TEST(std::string(p.bound) == "the engine's thread");
  BOOST_TEST(p.hosts == 100'000.0 / 12, boost::test_tools::tolerance(kSmall));
  BOOST_TEST(p.frames == 100'000.0 / 60, boost::test_tools::tolerance(kSmall));
  BOOST_TEST(p.comm == 100'000 * 8 * 30 / 5.0, boost::test_tools::tolerance(kSmall));
  BOOST_TEST(p.evidence == 196.2e6, boost::test_tools::tolerance(kSmall));
  // 98 + 48 + 1,962 B/s of each host.
  BOOST_TEST(p.bytes == 210.8e6 / 12, boost::test_tools::tolerance(kSmall));
  // 31 + 50 + 1.962 kB × 9 µs.
  BOOST_TEST(p.cores_all == 100'000 * 98.658e-6, boost::test_tools::tolerance(kSmall));
  BOOST_TEST(p.memory == 40e6 + 75e3 * 100'000 / 12, boost::test_tools::tolerance(kSmall));
  // 196.2 MB/s in objects of 8 MiB.
  BOOST_TEST(p.puts_a_day == 86'400 * 196.2e6 / 8'388'608, boost::test_tools::tolerance(kSmall));
  BOOST_TEST(p.bucket_bytes == 196.2e6 * 86'400 * 30, boost::test_tools::tolerance(kSmall));
  BOOST_TEST(p.database_bytes == p.puts_a_day * 400 * 450 + 1000 * 30 * 20e3,
             boost::test_tools::tolerance(kSmall));
}

BOOST_AUTO_TEST_CASE(quiet_hosts_are_bounded_by_connections_and_small_sites_by_availability) {
  const ClusterPlan quiet = plan_of(
      [] {
        PlanSite out = site_of(100'000);
        out.step_s = 30;
        return out;
      }(),
      kQuiet);
  BOOST_TEST(std::string(quiet.bound) == "connections");
  BOOST_TEST(quiet.collectors == 8);  // 100,000 / 16,384, and one
  const ClusterPlan small = plan_of(site_of(64), kQuiet);
  BOOST_TEST(small.collectors == 2);
  BOOST_TEST(std::string(small.bound) == "availability");
  BOOST_TEST(small.puts_a_day == 86'400 * .2, boost::test_tools::tolerance(kSmall));  // one in 10 s of each
}

BOOST_AUTO_TEST_CASE(without_evidence_nothing_is_in_the_bucket) {
  PlanSite site = site_of(1000);
  site.evidence = false;
  const ClusterPlan p = plan_of(site, kTalkative);
  BOOST_TEST((p.evidence == 0 && p.puts_a_day == 0 && p.bucket_bytes == 0 && p.rows_a_day == 0));
  BOOST_TEST(p.database_bytes == 600e6, boost::test_tools::tolerance(kSmall));  // reports
}

BOOST_AUTO_TEST_CASE(only_what_has_a_price_costs) {
  PlanSite site = site_of(1000);
  BOOST_TEST(!plan_of(site, kQuiet).cost_month.has_value());
  site.price_put = 1;
  const ClusterPlan p = plan_of(site, kQuiet);
  BOOST_REQUIRE(p.cost_month.has_value());
  BOOST_TEST(*p.cost_month == p.puts_a_day * 30 / 1000, boost::test_tools::tolerance(kSmall));
}

BOOST_AUTO_TEST_CASE(the_document_has_the_constants_of_the_formula) {
  const auto path = std::filesystem::path(CULPRIT_SOURCE_DIR) / "daemon/docs/cluster.md";
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  BOOST_REQUIRE(!text.empty());
  for (const PlanConstant& one : plan_constants()) {
    const std::string row = fmt::format("| {} | {} | {} |", one.name, one.value, one.source);
    BOOST_TEST(text.find(row) != std::string::npos, row);
  }
}

BOOST_AUTO_TEST_CASE(the_json_is_one_document_with_both_loads) {
  const auto json = nlohmann::json::parse(plan_json(site_of(1000)));
  BOOST_TEST(json["schema"] == "culprit.cluster.plan/1");
  BOOST_TEST(json["talkative"]["condensed_bytes_per_s"].get<double>() == 98'000.0);
  BOOST_TEST(json["quiet"]["collectors"].get<double>() == 2.0);
  BOOST_TEST(json["constants"].size() == plan_constants().size());
}

BOOST_AUTO_TEST_SUITE_END()
