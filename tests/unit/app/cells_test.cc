// Several collectors as one: which members of a cluster are asked.
#include "app/cells.h"

#include <boost/test/unit_test.hpp>

namespace culprit::app {
namespace {

BOOST_AUTO_TEST_SUITE(cells_of_a_cluster)

BOOST_AUTO_TEST_CASE(the_others_of_a_list_are_its_members_without_the_one_that_answers) {
  const auto others = other_members(
      R"({"member":"x","items":[{"name":"x","http":"https://x","this":true},
          {"name":"y","http":"https://y:7420","this":false},{"name":"z","http":null,"this":false}]})");
  BOOST_REQUIRE_EQUAL(others.size(), 2u);
  BOOST_CHECK_EQUAL(others[0].name, "y");
  BOOST_CHECK_EQUAL(others[0].http, "https://y:7420");
  BOOST_CHECK_EQUAL(others[1].name, "z");
  BOOST_CHECK_EQUAL(others[1].http, "");
}

BOOST_AUTO_TEST_CASE(what_is_no_list_of_members_names_none) {
  for (const char* text : {"", "[]", "{}", R"({"items":1})", R"({"items":[1,null,"y"]})", "nonsense"})
    BOOST_CHECK(other_members(text).empty());
}

BOOST_AUTO_TEST_CASE(a_token_for_an_encrypted_server_is_sent_to_no_member_in_clear) {
  BOOST_CHECK_EQUAL(why_not_asked("https://x", {"y", "https://y"}), "");
  BOOST_CHECK_EQUAL(why_not_asked("http://x", {"y", "http://y"}), "");
  BOOST_CHECK_EQUAL(why_not_asked("unix:/run/api.sock", {"y", "https://y"}), "");
  BOOST_CHECK_EQUAL(why_not_asked("https://x", {"y", "http://y"}),
                    "its cluster.http, http://y, is not encrypted");
  BOOST_CHECK_EQUAL(why_not_asked("unix:/run/api.sock", {"y", "http://127.0.0.1:7420/"}), "");
  BOOST_CHECK_EQUAL(why_not_asked("unix:/run/api.sock", {"y", "http://y:7420"}),
                    "its cluster.http, http://y:7420, is not encrypted");
  BOOST_CHECK_EQUAL(why_not_asked("https://x", {"y", ""}), "it has no cluster.http");
  BOOST_CHECK_EQUAL(why_not_asked("https://x", {"y", "unix:/tmp/s"}), "its cluster.http is no address");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::app
