// Checks of hosts as the collector orders them: who is asked, when again, and how each order ends.
#include "app/daemon/recover/host_checks.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <string>
#include <vector>

using namespace culprit;
using namespace culprit::app;
using peer::CheckAnswer;
using ControllerAnswer = recover::CheckAnswer;

namespace {

// Agents of two hosts, and a clock in seconds.
struct CheckedHosts {
  std::map<std::string, std::string> boots = {{"n1", "b1"}, {"n2", "b2"}}, jobs;
  std::vector<std::string> asked;
  HostChecks checks{{[this](const std::string& host, const peer::CheckHost& request) {
                       if (!boots.contains(host)) return false;
                       asked.push_back(host + " " + request.decision);
                       return true;
                     },
                     [this](const std::string& host) { return boots.contains(host) ? boots[host] : ""; },
                     [this](const std::string& host) { return jobs.contains(host) ? jobs[host] : ""; }}};
  TimeNs now = 1000 * kNsPerSecond;

  void order(std::vector<std::string> hosts, TimeNs seconds = 100) {
    checks.order({"d-1", "", std::move(hosts), "why", now + seconds * kNsPerSecond}, now);
  }
  void pass(TimeNs seconds) {
    for (TimeNs s = 0; s < seconds; ++s) checks.beat(now += kNsPerSecond);
  }
  void answer(const std::string& host, CheckAnswer what, const std::string& decision = "d-1") {
    checks.answered(host, {decision, what, "says so"}, now);
  }
  // "n1 0 why" of each answer: passed, failed, none.
  std::vector<std::string> ends() {
    std::vector<std::string> out;
    for (const recover::HostChecked& one : checks.drain())
      out.push_back(one.host + " " + std::to_string(static_cast<int>(one.answer)) + " " + one.why);
    return out;
  }
};

using Texts = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(checks_of_hosts)

BOOST_AUTO_TEST_CASE(each_host_is_asked_once_and_its_answer_ends_the_order) {
  CheckedHosts all;
  all.order({"n1", "n2"});
  all.pass(5);
  BOOST_TEST((all.asked == Texts{"n1 d-1", "n2 d-1"}));
  all.answer("n1", CheckAnswer::kPassed);
  all.answer("n2", CheckAnswer::kFailed);
  BOOST_TEST((all.ends() == Texts{"n1 0 says so", "n2 1 says so"}));
  all.pass(200);
  BOOST_TEST(all.ends().empty());
}

BOOST_AUTO_TEST_CASE(no_answer_is_asked_for_again_until_the_limit) {
  CheckedHosts all;
  all.order({"n1"}, 25);
  all.answer("n1", CheckAnswer::kNoAnswer);
  all.pass(10);
  BOOST_TEST(all.asked.size() == 2u);
  all.answer("n1", CheckAnswer::kNoAnswer);
  all.pass(15);
  BOOST_TEST((all.ends() == Texts{"n1 2 its agent has not answered in time"}));
}

BOOST_AUTO_TEST_CASE(hosts_that_are_away_or_have_a_job_end_without_an_answer) {
  CheckedHosts all;
  all.jobs["n1"] = "4711";
  all.order({"n1", "n3"});
  all.pass(100);
  BOOST_TEST(all.asked.empty());
  BOOST_TEST((all.ends() == Texts{"n1 2 job 4711 runs on it", "n3 2 its agent is not connected"}));
}

BOOST_AUTO_TEST_CASE(host_that_is_away_for_a_while_is_asked_when_it_is_back) {
  CheckedHosts all;
  all.order({"n1"});
  all.boots.erase("n1");
  all.pass(20);
  all.boots["n1"] = "b1";
  all.pass(20);
  BOOST_TEST(all.asked.size() == 2u);
  all.answer("n1", CheckAnswer::kPassed);
  BOOST_TEST((all.ends() == Texts{"n1 0 says so"}));
}

BOOST_AUTO_TEST_CASE(answers_that_were_not_asked_for_have_no_effect) {
  CheckedHosts all;
  all.answer("n1", CheckAnswer::kPassed);
  all.order({"n1"});
  all.answer("n1", CheckAnswer::kPassed, "d-2");
  all.answer("n2", CheckAnswer::kPassed);
  BOOST_TEST(all.ends().empty());
}

BOOST_AUTO_TEST_CASE(isolated_host_is_checked_after_its_restart_until_a_check_answers) {
  CheckedHosts all;
  const auto see = [&](bool may_check = true) {
    all.checks.see_isolated({{"n1", "op1"}}, may_check, all.now);
  };
  see();
  all.pass(3600);
  see();
  BOOST_TEST(all.asked.empty());
  all.boots["n1"] = "b7";
  see();
  all.pass(30);
  see();
  BOOST_TEST(all.asked.empty());  // its services start
  all.pass(30);
  see();
  BOOST_TEST((all.asked == Texts{"n1 op1"}));
  all.pass(300);  // no answer
  BOOST_TEST(all.ends().size() == 1u);
  all.pass(601);
  see();
  BOOST_TEST((all.asked == Texts{"n1 op1", "n1 op1"}));
  all.answer("n1", CheckAnswer::kFailed, "op1");
  BOOST_TEST((all.ends() == Texts{"n1 1 says so"}));
  all.pass(50'000);
  see();
  BOOST_TEST(all.asked.size() == 2u);
}

BOOST_AUTO_TEST_CASE(restarted_host_is_not_checked_where_the_stage_is_off_or_it_is_not_ours) {
  CheckedHosts all;
  all.checks.see_isolated({{"n1", "op1"}, {"n2", "op2"}}, false, all.now);
  all.boots["n1"] = all.boots["n2"] = "b7";
  all.checks.see_isolated({{"n1", "op1"}}, false, all.now);
  all.pass(100);
  all.checks.see_isolated({{"n1", "op1"}}, false, all.now);
  BOOST_TEST(all.asked.empty());
}

BOOST_AUTO_TEST_SUITE_END()
