// The service of a member whose database cannot be reached. With a database: tests/e2e/cases_cluster.py.
#include "app/daemon/recover/lease_service.h"

#include <boost/test/unit_test.hpp>

#include "../../io/fake_env.h"

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_SUITE(services_of_leases)

BOOST_AUTO_TEST_CASE(without_the_configuration_there_is_none) {
  io::testing::FakeEnv env;
  const Config config;
  auto service = LeaseService::start(env, {&config, {}});
  BOOST_REQUIRE(service);
  BOOST_TEST(!*service);
}

BOOST_AUTO_TEST_CASE(it_asks_at_once_and_says_once_that_the_database_does_not_answer) {
  io::testing::FakeEnv env;
  Config config;
  config.cluster.database = "host=/nowhere dbname=culprit";
  config.cluster.memory = 1;
  config.host.name = "x";
  config.collector.listen = "x.example:7421";
  std::vector<std::string> lines;
  auto service =
      LeaseService::start(env, {&config, [&](LogLevel, const std::string& what) { lines.push_back(what); }});
  BOOST_REQUIRE(service);
  BOOST_REQUIRE(*service);
  BOOST_TEST((*service)->gate()->name() == "x");
  BOOST_TEST((*service)->gate()->address() == "x.example:7421");
  BOOST_TEST((*service)->is_above_mark());
  for (int i = 0; i < 3; ++i) {
    env.run();
    (*service)->beat();
  }
  BOOST_REQUIRE(lines.size() == 2u);
  BOOST_TEST(lines[0].find("above the mark of 1 B") != lines[0].npos, lines[0]);
  BOOST_TEST(lines[1].find("cluster: the database does not answer: ") == 0u, lines[1]);
  BOOST_TEST(!(*service)->gate()->is_open());
  (*service)->stop();
  env.run();
}

BOOST_AUTO_TEST_SUITE_END()
