#include "app/daemon/watch/ras_pods.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "app/jobs/process_view.h"

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_SUITE(ras_pods)

BOOST_AUTO_TEST_CASE(a_pod_is_asked_at_the_ports_of_loopback_addresses_alone) {
  const std::vector<uint16_t> expected = {28028, 7};
  BOOST_TEST((loopback_ports({"127.0.0.1:28028", "10.0.0.7:99", "localhost:7", "127.0.0.1:7",
                              "no address"}) == expected));
  BOOST_TEST(loopback_ports({"10.0.0.7:28028"}).empty());
}

BOOST_AUTO_TEST_CASE(an_answer_of_a_namespace_is_that_of_its_users_only_job) {
  const std::vector<PodProcess> all = {
      {"a", {10, 1000, 1}}, {"b", {11, 1001, 1}}, {"a", {12, 1000, 1}}, {"c", {13, 1001, 1}}};
  BOOST_REQUIRE(listener_of(all, 1000));
  BOOST_TEST(listener_of(all, 1000)->process.pid == 10u);
  BOOST_TEST(!listener_of(all, 1001));  // two jobs
  BOOST_TEST(!listener_of(all, 1002));  // another user's listener
}

BOOST_AUTO_TEST_CASE(a_network_namespace_has_one_number_for_all_in_it) {
  const auto own = network_namespace("/proc", "self");
  BOOST_REQUIRE(own);
  BOOST_TEST((network_namespace("/proc", std::to_string(::getpid())) == own));
  BOOST_TEST(!network_namespace("/proc", "0"));
}

BOOST_AUTO_TEST_SUITE_END()
