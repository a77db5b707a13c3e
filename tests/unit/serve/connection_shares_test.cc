#include "serve/connection_shares.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

using namespace culprit::serve;

BOOST_AUTO_TEST_SUITE(connections)

// "a" and "b" wait for a request, "A" and "B" are answered; in order of arrival. At most two of a client may
// wait before they go first.
BOOST_AUTO_TEST_CASE(the_largest_client_loses_its_oldest_half_request_or_else_its_oldest_answer) {
  const struct {
    std::string members;
    size_t goes;
  } cases[] = {
      {"a", 0},      {"A", 0},         {"ab", 0},  // as many: the one that came first
      {"baa", 1},                                  // the client with the most
      {"bAaaa", 2},                                // more wait than may
      {"bAaa", 1},                                 // few wait: an answer goes
      {"AAAAa", 0},  // answers that are not read never keep out a request of the same client
      {"AAaaab", 2}, {"BBBaaaaAA", 3}, {"BBBBBaa", 0},
  };
  for (const auto& row : cases) {
    std::vector<std::string> names;
    for (const char c : row.members) names.emplace_back(1, static_cast<char>(c | 0x20));
    std::vector<OpenConnection> members;
    for (size_t i = 0; i < names.size(); ++i) members.push_back({names[i], i, row.members[i] >= 'a'});
    BOOST_TEST_CONTEXT(row.members) BOOST_TEST(gives_way(members, 2) == row.goes);
  }
}

BOOST_AUTO_TEST_SUITE_END()
