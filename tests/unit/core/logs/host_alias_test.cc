#include "core/logs/host_alias.h"

#include <boost/test/unit_test.hpp>

namespace culprit::logs {
namespace {

using Names = std::map<std::string, std::string>;

BOOST_AUTO_TEST_CASE(a_host_with_and_without_its_domain_is_one) {
  const HostAliases none;
  BOOST_TEST((none.resolve({"node7", "node7.cluster.local", "node8"}, {}) ==
              Names{{"node7.cluster.local", "node7"}}));
  BOOST_TEST((none.resolve({"node7", "node7.cluster.local"}, {"node7.cluster.local"}) ==
              Names{{"node7", "node7.cluster.local"}}));
  BOOST_TEST((none.resolve({"node7-ib0", "node7"}, {}) == Names{{"node7-ib0", "node7"}}));
  BOOST_TEST((none.resolve({"10.0.2.7", "ip-10-0-2-7"}, {}) == Names{{"10.0.2.7", "ip-10-0-2-7"}}));
  BOOST_TEST((none.resolve({"node7", "node8", "node7-1"}, {}) == Names{}));
}

BOOST_AUTO_TEST_CASE(hosts_of_two_domains_stay_two) {
  const HostAliases none;
  BOOST_TEST((none.resolve({"node7.a.org", "node7.b.org"}, {}) == Names{}));
  BOOST_TEST((none.resolve({"node7", "node7.a.org", "node7.b.org"}, {}) == Names{}));
}

BOOST_AUTO_TEST_CASE(pods_whose_lines_name_one_machine_each_are_these_machines) {
  HostAliases aliases;
  for (int i : {0, 1, 2}) {
    const std::string pod = "trainer-worker-" + std::to_string(i),
                      node = "ip-10-0-2-" + std::to_string(i + 7);
    aliases.count(pod, pod, 60);
    aliases.count(pod, node, 40);
  }
  const Names names = aliases.resolve({"trainer-worker-0", "ip-10-0-2-7"}, {});
  BOOST_TEST(names.at("ip-10-0-2-7") == "trainer-worker-0");
  BOOST_TEST(names.size() == 3u);
}

BOOST_AUTO_TEST_CASE(hosts_that_are_only_spoken_of_are_no_other_names) {
  const auto resolved = [](uint64_t lines, const std::string& second) {
    HostAliases aliases;
    aliases.count("node-0", "node-0", 100);
    aliases.count("node-0", "node-7", lines);
    aliases.count("node-1", "node-1", 100);
    aliases.count("node-1", second, lines);
    return aliases.resolve({"node-0", "node-1", "node-7"}, {});
  };
  BOOST_TEST((resolved(2, "node-8") == Names{}));    // too few lines
  BOOST_TEST((resolved(90, "node-7") == Names{}));   // one alias of two hosts
  BOOST_TEST((resolved(90, "node-0") == Names{}));   // a host with logs of its own
  BOOST_TEST((resolved(90, "node-8").size() == 2));  // all their lines
}

}  // namespace
}  // namespace culprit::logs
