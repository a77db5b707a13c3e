// Sharing of reports without a database. With one: tests/e2e/cases_cluster_reports.py.
#include "app/daemon/recover/shared_reports.h"

#include <boost/test/unit_test.hpp>

#include "../../io/fake_env.h"

namespace culprit::app {
namespace {

BOOST_AUTO_TEST_SUITE(shared_reports)

BOOST_AUTO_TEST_CASE(before_the_database_answers_nothing_is_asked_and_the_own_knowledge_is_answered) {
  io::testing::FakeEnv env;
  Config config;
  config.cluster.database = "host=/nowhere dbname=culprit";
  store::postgres::ClusterStoreOptions of;
  of.conninfo = config.cluster.database;
  of.name = "x";
  SharedReportsOptions options;
  options.config = &config;
  options.gate = std::make_shared<PartitionGate>(of);
  std::vector<std::string> lines;
  options.log = [&](LogLevel, const std::string& what) { lines.push_back(what); };
  options.id_of = [](const std::string& job) { return std::optional(job); };
  auto started = SharedReports::start(env, std::move(options));
  BOOST_REQUIRE(started);
  SharedReports& shared = **started;
  int asked = 0;
  shared.begin({[&](auto) { ++asked; }, [&](const OwnRun&, auto) { ++asked; },
                [&](const std::string&, auto) { ++asked; }});
  for (int i = 0; i < 3; ++i) {
    shared.changed("j");
    shared.beat(true);
    env.run();
  }
  BOOST_TEST(asked == 0);
  BOOST_TEST(lines.empty());
  const RunFacts own;
  BOOST_TEST(shared.instead_of("j", &own, {}) == nullptr);
  BOOST_TEST(shared.instead_of("j", nullptr, {}) == nullptr);
  BOOST_TEST(!shared.owns("j"));
  BOOST_TEST(shared.unpublished() == 0u);
  BOOST_TEST(shared.unpublished_since() == kNoTime);
  shared.stop();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::app
