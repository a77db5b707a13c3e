#include "cli/recovery_text.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::cli;

namespace {

constexpr TimeNs kRecoveryDay = 24LL * 3600 * kNsPerSecond;
constexpr TimeNs kRecoveryToday = 1'700'000'000 * kNsPerSecond;

Json machine_row(const char* host, const char* op, std::vector<TimeNs> isolations) {
  return {{"host", host},
          {"device", ""},
          {"suspected", 5},
          {"isolated", isolations.size()},
          {"returned", 0},
          {"last_ns", kRecoveryToday},
          {"last_root", "nvidia.xid.79"},
          {"op", op},
          {"isolations", isolations}};
}

bool shows_part(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(recovery_text)

BOOST_AUTO_TEST_CASE(a_host_that_is_taken_out_again_and_again_is_told_and_comes_first) {
  const Json json = {{"items",
                      {machine_row("n1", "", {kRecoveryToday - 30 * kRecoveryDay}),
                       machine_row("n2", "0011223344556677",
                                   {kRecoveryToday - 9 * kRecoveryDay, kRecoveryToday - 3 * kRecoveryDay,
                                    kRecoveryToday - kRecoveryDay, kRecoveryToday}),
                       machine_row("n3\x1b[2J", "", {kRecoveryToday - kRecoveryDay})}}};
  const std::string text = machines_text(json, Zone(), kRecoveryToday);
  BOOST_TEST(shows_part(text, "third time in 7 days"));
  BOOST_TEST(shows_part(text, "first time in 7 days"));
  BOOST_TEST(shows_part(text, "out by 0011223344556677"));
  BOOST_TEST(text.find("n2") < text.find("n1"));
  BOOST_TEST(!shows_part(text, "\x1b[2J"));
  BOOST_TEST(machines_text({{"items", Json::array()}}, Zone(), kRecoveryToday) == "no host was suspected\n");
}

BOOST_AUTO_TEST_CASE(costs_have_a_row_for_each_job_and_a_sum) {
  const Json lost = {{{"cause", "device"}, {"seconds", 90.0}}, {{"cause", nullptr}, {"seconds", 10.0}}};
  const Json none = {{"count", 0}};
  const Json json = {{"jobs", 1},
                     {"attempts", 2},
                     {"failures", 1},
                     {"wall_s", 1000.0},
                     {"productive_s", 900.0},
                     {"ettr", 0.9},
                     {"lost", lost},
                     {"detect", {{"count", 1}, {"median_s", 30.0}, {"most_s", 30.0}}},
                     {"decide", none},
                     {"again", none},
                     {"items",
                      {{{"job", "4711"},
                        {"last_ns", kRecoveryToday},
                        {"attempts", 2},
                        {"failures", 1},
                        {"wall_s", 1000.0},
                        {"ettr", 0.9},
                        {"lost", lost}}}}};
  const std::string text = job_costs_text(json, Zone());
  for (const char* part : {"4711", "90.0 %", "device", "no verdict", "to detect"})
    BOOST_TEST(shows_part(text, part), part);
  BOOST_TEST(!shows_part(text, "to decide"));
  BOOST_TEST(shows_part(job_costs_text({{"items", Json::array()}}, Zone()), "knows no attempt"));
}

BOOST_AUTO_TEST_CASE(the_list_shows_stages_in_one_line_and_a_scheduler_that_is_away) {
  Json json = {{"mode", "ask"},
               {"trouble", "the scheduler does not answer: squeue: timeout\x1b"},
               {"trouble_since_ns", kRecoveryToday},
               {"remedy", "scontrol ping"},
               {"view_ns", nullptr},
               {"isolated", 0},
               {"stages",
                {{{"partition", nullptr},
                  {"isolate", false},
                  {"restart", true},
                  {"check", false},
                  {"return", false}}}},
               {"items", Json::array()}};
  BOOST_TEST(
      recovery_overview_text(json, Zone()) ==
      "mode ask; 0 hosts are out\n"
      "stages: isolate off, restart ask, check off, return off\n"
      "nothing is done since 2023-11-14 22:13:20: the scheduler does not answer: squeue: timeout\\x1b\n"
      "  mend: scontrol ping\n"
      "no job is known: the scheduler gave no view yet\n");
  json["trouble"] = nullptr;
  json["view_ns"] = kRecoveryToday;
  json["mode"] = "observe";
  const std::string sound = recovery_overview_text(json, Zone());
  BOOST_TEST(shows_part(sound, "stages: isolate observe, restart observe, check observe, return observe\n"));
  BOOST_TEST(sound.ends_with("the scheduler shows no job\n"));
  BOOST_TEST(!shows_part(sound, "nothing is done"));
}

BOOST_AUTO_TEST_CASE(an_explanation_says_which_verdict_waits_and_why) {
  const Json json = {{"job", "7"},
                     {"attempt", 1},
                     {"state", "run"},
                     {"trouble", "the disk is full"},
                     {"waits", {"GPU lost (confidence 0.60): it waits to settle"}}};
  const std::string text = decision_text(json, Zone());
  BOOST_TEST(shows_part(text, "nothing is done: the disk is full\n"));
  BOOST_TEST(shows_part(text, "waits: GPU lost (confidence 0.60): it waits to settle\n"));
}

BOOST_AUTO_TEST_SUITE_END()
