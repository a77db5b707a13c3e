#include "cli/hosts.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::cli;

namespace {

Json host(const char* name, const char* conclusion, double score, const char* state = "healthy") {
  Json out = {{"host", name}, {"state", state}, {"standing", conclusion}, {"suspected", false}};
  if (score > 0) out.update(Json{{"score", score}, {"reason", "NIC is down"}, {"job", "j"}});
  return out;
}

std::vector<std::string> names(const std::vector<Json>& hosts) {
  std::vector<std::string> out;
  for (const Json& h : hosts) out.push_back(h["host"]);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts)

BOOST_AUTO_TEST_CASE(the_worst_host_comes_first) {
  const std::vector<std::string> sorted =
      names(worst_first({host("n1", "normal", 0), host("o1", "odd", 0.3), host("s1", "suspect", 0.6),
                         host("q", "normal", 0, "silent"), host("o2", "odd", 0.5),
                         host("s2", "suspect", 0.9, "silent"), host("n2", "normal", 0)}));
  const std::vector<std::string> expected = {"s2", "s1", "q", "o2", "o1", "n1", "n2"};
  BOOST_TEST(sorted == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_row_shows_state_score_and_reason) {
  Json hostile = host("\x1b[2Jx", "odd", 0.31);
  const std::string text =
      hosts_text({host("a", "suspect", 0.912), hostile, host("c", "normal", 0)}, Zone(), false);
  BOOST_TEST(text.find("suspect") != text.npos);
  BOOST_TEST(text.find("0.91") != text.npos);
  BOOST_TEST(text.find("NIC is down (job j)") != text.npos);
  BOOST_TEST(text.find("\x1b") == text.npos);
  const std::string last = text.substr(text.rfind('\n', text.size() - 2));
  BOOST_TEST(last.find("normal") != last.npos, last);
  BOOST_TEST(last.find("0.00") == last.npos, last);
}

BOOST_AUTO_TEST_CASE(an_earlier_daemon_says_only_who_is_suspected) {
  Json old = {{"host", "a"}, {"suspected", true}, {"score", 0.8}};
  BOOST_TEST(hosts_text({old}, Zone(), false).find("suspect ") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
