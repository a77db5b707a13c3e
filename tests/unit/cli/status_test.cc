#include "cli/status.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::cli;

BOOST_AUTO_TEST_SUITE(status)

BOOST_AUTO_TEST_CASE(a_status_has_eight_lines_whatever_the_role_and_the_troubles) {
  const Json agent = {{"version", "1"},
                      {"host", "h"},
                      {"role", "agent"},
                      {"health", "ok"},
                      {"forward", {{"sentence", "connected"}, {"to", "c:1"}, {"waiting_bytes", 2048}}},
                      {"logs", {{{"path", "/a"}, {"files", 3}, {"gaps", 2}}, {{"path", "/b"}, {"files", 4}}}},
                      {"later", {{"field", 1}}}};
  const Json collector = {
      {"role", "collector"},
      {"collector", {{"hosts", 64}, {"listen", "0.0.0.0:7421"}, {"last_refusal", "x: no\nname"}}},
      {"alerts", {{"firing", 5}, {"receivers", Json::array()}, {"troubles", {"pager: 500"}}}},
      {"engines", {{"jobs_without_engine", 1}}}};
  for (const Json& json : {agent, collector, Json::object()}) {
    const std::string text = status_text(json, Zone(), false);
    BOOST_TEST(std::count(text.begin(), text.end(), '\n') == 8, text);
  }
  const std::string of_agent = status_text(agent, Zone(), false),
                    of_collector = status_text(collector, Zone(), false);
  for (const char* part : {"reads      7 files of 2 log patterns", "connected to c:1", "2 gaps in logs"})
    BOOST_TEST(of_agent.find(part) != of_agent.npos, of_agent);
  for (const char* part : {"64 hosts connected to 0.0.0.0:7421", "5 firing, no receiver, so none is sent",
                           "1 job without an engine", "pager: 500", R"(x: no\x0aname)"})
    BOOST_TEST(of_collector.find(part) != of_collector.npos, of_collector);
}

BOOST_AUTO_TEST_CASE(an_agent_without_its_collector_says_so_and_all_has_each_field) {
  const Json json = {
      {"version", "1"},  {"host", "h"},
      {"role", "agent"}, {"health", "ok"},
      {"started_ns", 0}, {"forward", {{"sentence", "not connected: c:1: refused\x1b"}, {"trouble", ""}}}};
  const std::string text = status_text(json, Zone(), false);
  BOOST_TEST(text.find(R"(forward    not connected: c:1: refused\x1b; )") != text.npos, text);
  const std::string all = status_fields(json, Zone(), false);
  BOOST_TEST(all.substr(0, all.find('\n')).ends_with(": ok"), all);
  // An empty value has no row.
  BOOST_TEST((all.find("forward.sentence") != all.npos && all.find("forward.trouble") == all.npos), all);
}

BOOST_AUTO_TEST_CASE(the_row_of_pods_says_how_their_jobs_are_known) {
  Json json = {
      {"pods", {{"followed", 200}, {"jobs", 10}, {"left_out", 33}, {"waiting", 0}, {"trouble", nullptr}}}};
  std::string text = status_text(json, Zone(), false);
  BOOST_TEST(
      text.find("pods       200 pods of 10 jobs followed, 33 left out; labels from the API server\n") !=
          text.npos,
      text);
  json["pods"]["waiting"] = 2;
  json["pods"]["trouble"] = "403 pods is forbidden\x1b";
  text = status_text(json, Zone(), false);
  BOOST_TEST(
      text.find(R"(33 left out, 2 waiting; jobs by the pods' names: 403 pods is forbidden\x1b)") != text.npos,
      text);
}

BOOST_AUTO_TEST_CASE(a_controller_that_does_nothing_is_in_the_status_with_its_reason) {
  Json json = {{"controller",
                {{"mode", "act"},
                 {"trouble", "the controller did not start: recover.db: not a database"},
                 {"trouble_since_ns", 0},
                 {"remedy", "culpritd --check"}}}};
  const std::string text = status_text(json, Zone(), false);
  BOOST_TEST(text.find("controller act; does nothing since ") != text.npos, text);
  BOOST_TEST(text.find("; mend: culpritd --check\n") != text.npos, text);
  BOOST_TEST(text.find("trouble    the controller did not start: recover.db: not a database\n") != text.npos,
             text);
  json["controller"]["trouble"] = "the Lease culprit/c is of b, which acts";
  json["controller"]["remedy"] = nullptr;
  const std::string standby = status_text(json, Zone(), false);
  BOOST_TEST(standby.find("controller act; another collector acts since ") != text.npos, standby);
  BOOST_TEST(standby.find("trouble    none\n") != text.npos, standby);
  json["controller"] = {
      {"mode", "ask"}, {"trouble", nullptr}, {"jobs", 3}, {"questions", 1}, {"isolated", 0}};
  const std::string sound = status_text(json, Zone(), false);
  BOOST_TEST(sound.find("controller ask; 3 jobs, 1 question open, 0 hosts out\n") != sound.npos, sound);
}

BOOST_AUTO_TEST_SUITE_END()
