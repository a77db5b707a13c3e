#include "forward/route.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::forward;

BOOST_AUTO_TEST_SUITE(routes)

namespace {

using Others = std::vector<peer::JobOwner>;

std::string chosen(Route& route, const std::vector<std::string>& jobs, const Others& others, TimeNs now = 0) {
  return route.owner(jobs, others, now).value_or("stays");
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_list_is_tried_in_turn) {
  Route route({"a:1", "b:1", "c:1"}, true);
  for (const char* next : {"a:1", "b:1", "c:1", "a:1"}) {
    BOOST_TEST(route.at() == next);
    route.failed(0);
  }
}

BOOST_AUTO_TEST_CASE(the_agent_goes_to_the_collector_that_owns_most_of_its_jobs) {
  const struct {
    std::vector<std::string> jobs;
    Others others;
    const char* to;
  } rows[] = {
      {{}, {}, "stays"},
      {{"j"}, {}, "stays"},
      {{"j"}, {{"j", "b:1", 3}}, "b:1"},
      {{"j"}, {{"k", "b:1", 3}}, "stays"},
      {{"j", "k"}, {{"j", "b:1", 3}}, "stays"},
      {{"j", "k"}, {{"j", "b:1", 3}, {"k", "c:1", 3}}, "b:1"},
      {{"j", "k", "l"}, {{"j", "b:1", 3}, {"k", "c:1", 3}, {"l", "c:1", 9}}, "c:1"},
  };
  for (const auto& row : rows) {
    Route route({"a:1"}, true);
    BOOST_TEST(chosen(route, row.jobs, row.others) == row.to);
  }
}

BOOST_AUTO_TEST_CASE(an_answer_of_an_earlier_epoch_is_ignored) {
  Route route({"a:1", "b:1"}, true);
  BOOST_TEST(chosen(route, {"j"}, {{"j", "b:1", 7}}) == "b:1");
  route.move("b:1");
  BOOST_TEST(chosen(route, {"j"}, {{"j", "a:1", 6}}) == "stays");
  BOOST_TEST(chosen(route, {"j"}, {{"j", "a:1", 8}}) == "a:1");
}

BOOST_AUTO_TEST_CASE(an_owner_that_fails_is_left_for_a_minute_unless_its_epoch_is_new) {
  for (const bool restarts : {false, true}) {
    Route route({"a:1"}, true);
    route.move(*route.owner({"j"}, {{"j", "b:1", 7}}, 0));
    route.failed(0);
    BOOST_TEST(route.at() == "a:1");
    const uint64_t epoch = restarts ? 8 : 7;
    BOOST_TEST(chosen(route, {"j"}, {{"j", "b:1", epoch}}, kNsPerSecond) == (restarts ? "b:1" : "stays"));
    BOOST_TEST(chosen(route, {"j"}, {{"j", "b:1", epoch}}, Route::kAwayNs) == "b:1");
  }
}

BOOST_AUTO_TEST_CASE(addresses_of_no_other_host_are_not_followed) {
  const struct {
    const char* at;
    bool tls;
    const char* named;
    bool follows;
  } rows[] = {
      {"a:1", true, "b:1", true},
      {"a:1", true, "0.0.0.0:1", false},
      {"a:1", true, "[::]:1", false},
      {"a:1", true, "b:0", false},
      {"a:1", true, "b", false},
      {"a:1", true, "127.0.0.1:1", false},
      {"localhost:1", true, "b:1", true},
      {"localhost:1", true, "[::1]:2", true},
      {"localhost:1", false, "b:1", false},
      {"localhost:1", false, "127.0.0.1:2", true},
  };
  for (const auto& row : rows) {
    Route route({row.at}, row.tls);
    BOOST_TEST(chosen(route, {"j"}, {{"j", row.named, 3}}) == (row.follows ? row.named : "stays"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
