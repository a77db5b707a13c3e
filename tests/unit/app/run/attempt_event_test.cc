#include "app/run/attempt_event.h"

#include <boost/test/unit_test.hpp>
#include <map>

namespace culprit::app {
namespace {

Lookup with(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto at = variables.find(std::string(name));
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attempt_event)

BOOST_AUTO_TEST_CASE(an_attempt_is_one_line_of_json) {
  BOOST_TEST(to_line({"4711", 2, 4, "again", "without \"n\n3\"", {"n3", "GPU 5"}}) ==
             R"({"kind":"event","name":"attempt","job":"4711","attempt":2,"of":4,"state":"again",)"
             R"("why":"without \"n\n3\"","excluded":["n3","GPU 5"]})"
             "\n");
}

BOOST_AUTO_TEST_CASE(an_attempt_of_a_chain_names_its_jobs) {
  AttemptEvent event{"102", 2, 4, "again", "", {}};
  event.first = "101", event.member = "102", event.successor = "103";
  BOOST_TEST(to_line(event) ==
             R"({"kind":"event","name":"attempt","job":"102","attempt":2,"of":4,"state":"again",)"
             R"("why":"","excluded":[],"first":"101","member":"102","successor":"103"})"
             "\n");
}

BOOST_AUTO_TEST_CASE(the_environment_of_an_attempt_names_it) {
  const auto got = begun_attempt(
      "j",
      with({{"CULPRIT_ATTEMPT", "2"}, {"CULPRIT_ATTEMPTS_LEFT", "3"}, {"CULPRIT_EXCLUDED", "n3,GPU 5"}}));
  BOOST_REQUIRE(got.has_value());
  BOOST_TEST(got->attempt == 2u);
  BOOST_TEST(got->of == 5u);
  BOOST_TEST(got->excluded == (std::vector<std::string>{"n3", "GPU 5"}));
  BOOST_TEST(!begun_attempt("j", with({{"CULPRIT_ATTEMPT", "2"}})));
  BOOST_TEST(!begun_attempt("j", with({{"CULPRIT_ATTEMPT", "-2"}, {"CULPRIT_ATTEMPTS_LEFT", "3"}})));
}

BOOST_AUTO_TEST_CASE(a_daemon_of_the_host_hears_only_of_a_job_whose_name_it_can_know) {
  BOOST_TEST(!host_daemon(with({})));
  const auto got = host_daemon(with({{"SLURM_JOB_ID", "4711"}, {"CULPRIT_TRACE_SOCKET", "/run/t.sock"}}));
  BOOST_REQUIRE(got.has_value());
  BOOST_TEST(got->job == "4711");
  BOOST_TEST(got->socket == "/run/t.sock");
  BOOST_TEST(host_daemon(with({{"SLURM_JOB_ID", "4711"}, {"CULPRIT_JOB", "own"}}))->job == "own");
}

BOOST_AUTO_TEST_CASE(a_daemon_that_is_away_is_no_error) {
  BOOST_TEST(!send_to_trace("/nowhere/trace.sock", "x\n"));
  BOOST_TEST(!send_to_trace("", "x\n"));
  BOOST_TEST(!send_to_trace(std::string(500, 'x'), "x\n"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
