#include "core/detect/ras/ras_states.h"

#include <boost/test/unit_test.hpp>

#include "base/limits.h"
#include "core/engine.h"

using namespace culprit;
using namespace culprit::core;

namespace {

constexpr TimeNs kStart = 1'763'690'000 * kNsPerSecond, kSecond = kNsPerSecond;

// A state in which rank 3 of 8 is behind since 20 seconds.
RasState behind(TimeNs at) {
  RasState s;
  s.host = "node-0";
  s.at_ns = at;
  s.json = true;
  s.answers = s.still = 3;
  s.still_since_ns = at - 20 * kSecond;
  s.comms_seen = 1;
  s.ranks = 8;
  s.processes = {{"10.0.0.9", 4003}};
  RasCommState& comm = s.comms.emplace_back();
  comm.size = comm.reporting = 8;
  comm.answers = 3;
  comm.since_ns = s.still_since_ns;
  comm.spreads.push_back({"AllReduce", {{100, 7, {}}, {99, 1, {{3, 0, 1, 3}}}}});
  return s;
}

Engine live_engine() {
  EngineOptions options;
  options.live = true;
  options.hang.after_ns = 10 * kSecond;
  return Engine(std::move(options));
}

void give(Engine& engine, Input input, TimeNs now) { engine.step({&input, 1}, now); }

}  // namespace

BOOST_AUTO_TEST_SUITE(ras_states)

BOOST_AUTO_TEST_CASE(the_rank_of_a_standing_job_is_a_suspect_with_the_name_of_its_host) {
  Engine engine = live_engine();
  RasState other;  // another host asked too, and said its address
  other.host = "node-9";
  other.address = "10.0.0.9";
  other.at_ns = kStart;
  give(engine, ras::RasInput{other, "ras", 0}, kStart);
  give(engine, ras::RasInput{behind(kStart + kSecond), "ras", 70}, kStart + kSecond);
  const Report report = engine.report(kStart + 2 * kSecond);
  BOOST_REQUIRE(report.hang);
  BOOST_REQUIRE(report.hang->suspects.size() == 1u);
  BOOST_TEST(report.hang->suspects[0].rank.value() == 3u);
  BOOST_TEST(report.hang->suspects[0].host.value() == "node-9");
  BOOST_REQUIRE(!report.diagnoses.empty());
  BOOST_TEST(report.diagnoses[0].title ==
             "Rank 3 (process 4003 on node-9) never joined AllReduce #100; 7 ranks wait");
  BOOST_REQUIRE(!report.diagnoses[0].evidence.empty());
  BOOST_TEST(report.diagnoses[0].evidence[0].offset.value() == 70u);
}

BOOST_AUTO_TEST_CASE(a_job_that_goes_on_has_no_hang) {
  Engine engine = live_engine();
  give(engine, ras::RasInput{behind(kStart), "ras", 0}, kStart);
  give(engine, detect::ProgressSeen{7, 0}, kStart + kSecond);
  BOOST_TEST(!engine.report(kStart + 2 * kSecond).hang);
}

BOOST_AUTO_TEST_CASE(an_announced_phase_is_no_hang) {
  Engine engine = live_engine();
  give(engine, detect::PhaseSeen{"checkpoint", true, 0}, kStart);
  give(engine, ras::RasInput{behind(kStart + 60 * kSecond), "ras", 0}, kStart + 60 * kSecond);
  BOOST_TEST(!engine.report(kStart + 61 * kSecond).hang);
}

BOOST_AUTO_TEST_CASE(a_standstill_shorter_than_the_bar_is_no_hang) {
  Engine engine = live_engine();
  RasState s = behind(kStart);
  s.still_since_ns = s.comms[0].since_ns = kStart - 5 * kSecond;
  give(engine, ras::RasInput{s, "ras", 0}, kStart);
  BOOST_TEST(!engine.report(kStart + kSecond).hang);
}

BOOST_AUTO_TEST_CASE(the_newest_state_counts) {
  Engine engine = live_engine();
  give(engine, ras::RasInput{behind(kStart), "ras", 0}, kStart);
  RasState healthy;
  healthy.host = "node-1";
  healthy.at_ns = kStart + kSecond;
  give(engine, ras::RasInput{healthy, "ras", 0}, kStart + kSecond);
  BOOST_TEST(!engine.report(kStart + 2 * kSecond).hang);
}

BOOST_AUTO_TEST_CASE(offline_one_answer_is_told_without_a_verdict) {
  Engine engine(EngineOptions{});
  RasState s = behind(kStart);
  s.answers = s.still = s.comms[0].answers = 1;
  give(engine, ras::RasInput{s, "ras.json", {}}, kNoTime);
  const Report report = engine.report();
  BOOST_TEST(!report.verdict);
  BOOST_REQUIRE(report.hang);
  BOOST_TEST(report.job.ranks == 8u);
}

BOOST_AUTO_TEST_CASE(states_of_many_hosts_are_limited_and_counted) {
  ras::RasStates states;
  for (size_t i = 0; i < limits::kRasHosts + 5; ++i) {
    RasState s;
    s.host = "node-" + std::to_string(i);
    s.at_ns = kStart + static_cast<TimeNs>(i);
    states.add({s, "ras", 0});
  }
  BOOST_TEST(states.dropped() == 5u);
}

BOOST_AUTO_TEST_SUITE_END()
