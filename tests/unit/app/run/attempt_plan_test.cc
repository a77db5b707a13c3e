// What the members of a run on several hosts exchange, and when one of them decides.
#include "app/run/attempt_plan.h"

#include <fmt/ranges.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

namespace culprit::app {
namespace {

constexpr TimeNs kPlanSecond = kNsPerSecond;

MemberRecord ended(std::string host, int status, TimeNs end = 0) {
  MemberRecord out;
  out.host = std::move(host);
  out.status = status;
  out.end_ns = end;
  return out;
}

MemberRecord spare(std::string host) {
  MemberRecord out = ended(std::move(host), 0);
  out.spare = true;
  return out;
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

struct Waiting {
  const char* what;
  std::vector<MemberRecord> ends;
  std::set<std::string> lost;
  uint32_t spares;
  TimeNs since_failure, since_ends;  // seconds; -1: none
  size_t turn;
  WaitStep step;
};
std::ostream& operator<<(std::ostream& out, const Waiting& w) { return out << w.what; }

// Of two hosts, "a" and "b", with 20 s for the others to end.
const Waiting kWaiting[] = {
    {"nothing ended", {}, {}, 0, -1, -1, 0, WaitStep::kWait},
    {"one ended well", {ended("a", 0)}, {}, 0, -1, -1, 0, WaitStep::kWait},
    {"both ended well", {ended("a", 0), ended("b", 0)}, {}, 0, -1, 0, 0, WaitStep::kDecide},
    {"a spare need not answer where all is well",
     {ended("a", 0), ended("b", 0)},
     {},
     1,
     -1,
     0,
     0,
     WaitStep::kDecide},
    {"one failed just now", {ended("a", 1)}, {}, 0, 1, -1, 0, WaitStep::kWait},
    {"the other one is asked to end", {ended("a", 1)}, {}, 0, 5, -1, 0, WaitStep::kStop},
    {"the other one stays silent", {ended("a", 1)}, {}, 0, 20, -1, 0, WaitStep::kDecide},
    {"both failed", {ended("a", 1), ended("b", 1)}, {}, 0, 2, 0, 0, WaitStep::kDecide},
    {"the second in turn leaves it to the first",
     {ended("a", 1), ended("b", 1)},
     {},
     0,
     2,
     0,
     1,
     WaitStep::kWait},
    {"the second in turn takes over", {ended("a", 1), ended("b", 1)}, {}, 0, 6, 4, 1, WaitStep::kDecide},
    {"a spare has not answered yet", {ended("a", 1), ended("b", 1)}, {}, 1, 2, 1, 0, WaitStep::kWait},
    {"a spare has answered", {ended("a", 1), ended("b", 1), spare("c")}, {}, 1, 2, 0, 0, WaitStep::kDecide},
    {"a spare does not answer", {ended("a", 1), ended("b", 1)}, {}, 1, 4, 2, 0, WaitStep::kDecide},
    {"one ended well, the other is lost", {ended("a", 0)}, {"b"}, 0, 5, 5, 0, WaitStep::kDecide},
    {"one that is lost may come back in a moment", {ended("a", 0)}, {"b"}, 0, 0, 0, 0, WaitStep::kWait},
    {"no decision", {ended("a", 1), ended("b", 1)}, {}, 0, 62, 60, 5, WaitStep::kGiveUp},
};

Report of_host(const std::string& host) {
  Report r;
  r.diagnoses.emplace_back().restart = {Restart::kElsewhere, true, "why", {host}, {"GPU 5"}};
  return r;
}

AgreedDecision decision() {
  AgreedDecision d;
  d.by = "n2";
  d.attempt.number = 3;
  d.attempt.status = 1;
  d.attempt.headline = "GPU has \"fallen\" off \x1b[31m";
  d.attempt.confidence = 0.875;
  d.attempt.lost_ns = 7 * kPlanSecond;
  d.attempt.leaves_out = {"n1"};
  d.attempt.to = 17;
  d.attempt.failure.root = "a.b: c";
  d.attempt.failure.advice = {Restart::kElsewhere, true, "", {"n1"}, {"GPU 5"}};
  d.attempt.failure.ran_on = {"n1", "n2"};
  d.attempt.failure.progress = recover::Progress::kMade;
  d.attempt.failure.iteration = 17;
  d.attempt.failure.end_ns = 1'700'000'000 * kPlanSecond;
  d.attempt.decision.again = true;
  d.attempt.decision.wait_ns = 5 * kPlanSecond;
  d.attempt.decision.hosts = {"n1"};
  d.absent = {"n1"};
  d.next.attempt = 4;
  d.next.left = 2;
  d.next.hosts = {"n3", "n2"};
  d.next.port = 4711;
  d.next.resume = "/ckpt/12";
  d.next.resume_step = 12;
  d.next.without = {"GPU-a"};
  d.services = {{"hub.example", 443, ""}, {"", 0, "/data/part-3"}};
  return d;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attempt_plan)

BOOST_DATA_TEST_CASE(a_waiting_member_stops_the_others_decides_or_gives_up_in_time,
                     boost::unit_test::data::make(kWaiting)) {
  AttemptView view;
  view.hosts = {"a", "b"};
  for (const MemberRecord& end : sample.ends) view.ends[end.host] = end;
  view.lost = sample.lost;
  view.spares = sample.spares;
  if (sample.since_failure >= 0) view.since_failure = sample.since_failure * kPlanSecond;
  if (sample.since_ends >= 0) view.since_ends = sample.since_ends * kPlanSecond;
  const auto step = wait_step(view, Patience(20 * kPlanSecond), sample.turn);
  BOOST_TEST(static_cast<int>(step) == static_cast<int>(sample.step));
}

BOOST_AUTO_TEST_CASE(a_host_that_shows_life_has_twice_the_time_to_end) {
  AttemptView view;
  view.hosts = {"a", "b"};
  view.ends["a"] = ended("a", 1);
  view.since_failure = 20 * kPlanSecond;
  const Patience patience(20 * kPlanSecond);
  BOOST_TEST((wait_step(view, patience, 0) == WaitStep::kDecide));
  view.alive = {"b"};
  BOOST_TEST((wait_step(view, patience, 0) == WaitStep::kStop));
  view.since_failure = 40 * kPlanSecond;
  BOOST_TEST((wait_step(view, patience, 0) == WaitStep::kDecide));
}

BOOST_AUTO_TEST_CASE(no_member_takes_over_from_one_that_shows_that_it_decides) {
  AttemptView view;
  view.hosts = {"a", "b"};
  view.ends = {{"a", ended("a", 1)}, {"b", ended("b", 1)}};
  view.since_failure = view.since_ends = 1000 * kPlanSecond;
  view.deciding = true;
  const Patience patience(20 * kPlanSecond);
  BOOST_TEST((wait_step(view, patience, 1) == WaitStep::kWait));
  view.deciding = false;
  view.since_deciding = kPlanSecond;  // it was silent for too long
  BOOST_TEST((wait_step(view, patience, 1) == WaitStep::kWait));
  view.since_deciding = 4 * kPlanSecond;
  BOOST_TEST((wait_step(view, patience, 1) == WaitStep::kDecide));
  view.since_deciding = 60 * kPlanSecond;
  BOOST_TEST((wait_step(view, patience, 1) == WaitStep::kGiveUp));
}

BOOST_AUTO_TEST_CASE(a_spare_takes_the_node_rank_of_the_host_that_is_left_out) {
  const std::vector<std::string> hosts = {"n1", "n2", "n3"};
  BOOST_TEST(joined(next_hosts(hosts, {"n2"}, {"n8", "n9"}).value()) == "n1 n8 n3");
  BOOST_TEST(joined(next_hosts(hosts, {"n1", "n3"}, {"n8", "n9"}).value()) == "n8 n2 n9");
  BOOST_TEST(joined(next_hosts(hosts, {}, {}).value()) == "n1 n2 n3");
  BOOST_TEST(joined(next_hosts(hosts, {"n3", "n8"}, {"n8", "n9"}).value()) == "n1 n2 n9");
  BOOST_TEST(!next_hosts(hosts, {"n2"}, {}).has_value());
}

BOOST_AUTO_TEST_CASE(the_first_hosts_are_those_of_the_lowest_numbers_and_names) {
  std::map<std::string, MemberRecord> all;
  for (const char* host : {"n10", "n9", "n1"}) all[host] = ended(host, 0);
  BOOST_TEST(joined(first_hosts(all, 2)) == "n1 n9");
  all["n10"].member = 0, all["n9"].member = 1, all["n1"].member = 2;
  BOOST_TEST(joined(first_hosts(all, 2)) == "n10 n9");
}

BOOST_AUTO_TEST_CASE(advice_names_members_whatever_form_of_their_name_the_log_has) {
  const std::vector<std::string> hosts = {"n1.cluster", "n2.cluster"};
  RestartAdvice advice = of_host("n2").diagnoses[0].restart;
  name_members(advice, hosts);
  BOOST_TEST(joined(advice.hosts) == "n2.cluster");
  advice.hosts = {"switch-7"};
  name_members(advice, hosts);
  BOOST_TEST(advice.hosts.empty());
  BOOST_TEST(advice.devices.empty());
}

BOOST_AUTO_TEST_CASE(a_host_failed_first_only_if_all_clocks_agree_on_it) {
  std::map<std::string, MemberRecord> ends;
  ends["a"] = ended("a", 1, 10 * kPlanSecond);
  BOOST_TEST(first_to_fail(ends) == "a");
  ends["b"] = ended("b", 1, 10 * kPlanSecond + 1);
  BOOST_TEST(first_to_fail(ends).empty());
  ends["b"].end_ns = 12 * kPlanSecond;
  BOOST_TEST(first_to_fail(ends) == "a");
  ends["c"] = ended("c", 143, 9 * kPlanSecond);
  ends["c"].ended_by_us = true;
  ends["d"] = spare("d");
  BOOST_TEST(first_to_fail(ends) == "a");
  // Two clocks that differ; the file system has one for both.
  ends["a"].shared_end_ns = 50 * kPlanSecond, ends["b"].shared_end_ns = 40 * kPlanSecond;
  BOOST_TEST(first_to_fail(ends) == "b");
}

BOOST_AUTO_TEST_CASE(a_decision_is_read_as_it_was_written) {
  const AgreedDecision d = decision();
  const auto read = agreed_decision(to_json(d));
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(to_json(*read) == to_json(d));
  BOOST_TEST(read->next.rank_of("n2").value() == 1);
  BOOST_TEST(!read->next.rank_of("n1").has_value());
}

BOOST_AUTO_TEST_CASE(an_end_is_read_as_it_was_written) {
  MemberRecord end = ended("n1", 137, 5);
  end.stuck = "python (17) cannot be ended";
  end.age_ns = 7;
  end.gpus = {"CUDA_VISIBLE_DEVICES", {{"GPU-a", "0000:9b:00.0", "H100"}}, true};
  const MemberRecord read = member_record(to_json(end)).value();
  BOOST_TEST(to_json(read) == to_json(end));
  BOOST_TEST(read.gpus.gpus.at(0).uuid == "GPU-a");
}

BOOST_AUTO_TEST_CASE(a_record_with_wrong_values_is_rejected) {
  const auto broken = [](const char* pointer, nlohmann::json value) {
    auto object = nlohmann::json::parse(to_json(decision()));
    object[nlohmann::json::json_pointer(pointer)] = std::move(value);
    return !agreed_decision(object.dump()).has_value();
  };
  BOOST_TEST(!broken("/unknown", 1));  // of a later version
  BOOST_TEST(broken("/next/hosts", nlohmann::json::array({"../../etc"})));
  BOOST_TEST(broken("/next/hosts", nlohmann::json::array({"n1", "n1"})));
  BOOST_TEST(broken("/next/hosts", nlohmann::json::array()));
  BOOST_TEST(broken("/next/port", 70'000));
  BOOST_TEST(broken("/next", "n1"));
  BOOST_TEST(broken("/status", 256));
  BOOST_TEST(broken("/confidence", 1.5));
  BOOST_TEST(broken("/decision/wait_ns", -1));
  BOOST_TEST(broken("/by", "a/b"));
  BOOST_TEST(broken("/services/0/port", 65'536));
  BOOST_TEST(broken("/services", nlohmann::json::array({1})));
  for (const char* text : {"", "[]", "{}", "{\"host\":1}", "{\"host\":\"n1\",\"status\":\"x\"}"})
    BOOST_TEST(!member_record(text).has_value(), text);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
