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

BOOST_AUTO_TEST_SUITE_END()
