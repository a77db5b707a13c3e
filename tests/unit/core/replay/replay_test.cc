// Dual-phase replay: the plan's groups, the results' text, and what the judge makes of them.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <set>

#include "core/replay/host_list.h"
#include "core/replay/judge.h"
#include "core/replay/next_round.h"
#include "core/replay/results.h"

using namespace culprit;
using namespace culprit::replay;

namespace {

Plan plan_with(uint32_t hosts, uint32_t size) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < hosts; ++i) names.push_back("n" + std::to_string(i));
  return *plan_of(names, size);
}

// What the groups of both phases say if these hosts fail in each run.
std::vector<GroupRun> both_phases(const Plan& plan, const std::set<uint32_t>& faulty) {
  std::vector<GroupRun> out;
  for (const uint32_t phase : {1u, 2u})
    for (const HostSet& group : groups_of(plan, phase)) {
      const bool failed = std::ranges::any_of(group, [&](uint32_t host) { return faulty.contains(host); });
      out.push_back({phase, static_cast<uint32_t>(out.size() % plan.groups() + 1), failed, group});
    }
  return out;
}

void add_round(const Round& round, uint32_t phase, const std::set<uint32_t>& faulty,
               std::vector<GroupRun>& runs) {
  uint32_t number = 0;
  for (const HostSet& group : round.groups)
    runs.push_back({phase, ++number,
                    std::ranges::any_of(group, [&](uint32_t host) { return faulty.contains(host); }), group});
}

struct ListCase {
  const char* list;
  std::vector<std::string> names;
  const char* folded;
};
const ListCase kLists[] = {{"n[1-3]", {"n1", "n2", "n3"}, "n[1-3]"},
                           {"n[08-10],x", {"n08", "n09", "n10", "x"}, "n[08-10],x"},
                           {"n[9-10,12]", {"n9", "n10", "n12"}, "n[9-10,12]"},
                           {"r[1-2]n[1-2]", {"r1n1", "r1n2", "r2n1", "r2n2"}, "r1n[1-2],r2n[1-2]"},
                           {"b.site,a.site", {"b.site", "a.site"}, "a.site,b.site"}};
const char* const kWrongLists[] = {"",     "n[3-1]", "n[1-",       "n[]",   "n[1-2],n2",         "n1,,n2",
                                   "n;rm", "n[a-b]", "n[1-99999]", "n1 n2", "n[1-1000][1-1000]", "$(x)"};

struct ResultCase {
  const char* text;
  const char* error;  // a part of it
};
const ResultCase kWrongResults[] = {
    {"1 1 failed\n1 9 ok", "line 2: phase 1 has 4 groups, no group 9"},
    {"1 1 maybe", "neither ok nor failed"},
    {"0 1 ok", "count from 1"},
    {"1 1", "PHASE GROUP"},
    {"1 1 ok n1 n2", "PHASE GROUP"},
    {"-1 1 ok", "whole numbers"},
    {"3 1 failed", "name the hosts"},
    {"3 1 failed n99", "n99 is not among the hosts"},
    {"1 1 failed n1,n2", "other hosts in the plan"},
    {"3 1 failed n1,n2\n3 1 ok n1,n3", "had other hosts before"},
    {"{\"phase\": 1, \"group\": 1}", "'result'"},
    {"{\"phase\": -1, \"group\": 1, \"result\": \"ok\"}", "'phase'"},
    {"{\"phase\": 1, \"group\": 1, \"result\": \"ok\", \"hosts\": 3}", "'hosts'"},
    {"{broken", "no JSON object"}};

}  // namespace

BOOST_AUTO_TEST_SUITE(replay)

BOOST_AUTO_TEST_CASE(lists_of_hosts_expand_and_fold_back) {
  for (const ListCase& one : kLists) {
    const auto names = expand_hosts(one.list, 100);
    BOOST_REQUIRE(names);
    BOOST_TEST(*names == one.names, boost::test_tools::per_element());
    BOOST_TEST(fold_hosts(*names) == one.folded);
  }
}

BOOST_AUTO_TEST_CASE(wrong_lists_of_hosts_are_refused) {
  for (const char* list : kWrongLists) BOOST_TEST(!expand_hosts(list, 100).has_value(), list);
}

BOOST_AUTO_TEST_CASE(two_groups_meet_in_one_host_at_most) {
  for (uint32_t hosts = 2; hosts <= 130; ++hosts) {
    const Plan plan = plan_with(hosts, 0);
    BOOST_TEST(plan.meet() == 1u);
    const auto first = groups_of(plan, 1), second = groups_of(plan, 2);
    std::set<uint32_t> all;
    for (const HostSet& a : first)
      for (const HostSet& b : second) {
        HostSet common;
        std::ranges::set_intersection(a, b, std::back_inserter(common));
        BOOST_TEST(common.size() <= 1u, hosts);
        all.insert(common.begin(), common.end());
      }
    BOOST_TEST(all.size() == hosts);
  }
}

BOOST_AUTO_TEST_CASE(a_plan_without_a_second_group_or_with_too_many_hosts_is_refused) {
  BOOST_TEST(!plan_of({"a"}, 0).has_value());
  BOOST_TEST(!plan_of({"a", "b"}, 2).has_value());
  BOOST_TEST(!plan_of(std::vector<std::string>(kHostsMost + 1, "a"), 0).has_value());
  BOOST_TEST(plan_with(16, 8).meet() == 4u);
}

BOOST_AUTO_TEST_CASE(results_are_read_from_lines_and_json) {
  const Plan plan = plan_with(16, 4);
  const auto runs = read_results(
      "# phase group result\n\n1 2 failed\r\n 2\t3 ok  # "
      "fine\n{\"phase\":3,\"group\":1,\"result\":\"failed\","
      "\"hosts\":[\"n5\",\"n1\"]}\n3 1 ok\n1 1 ok n[0-3]\n",
      plan);
  BOOST_REQUIRE(runs);
  BOOST_REQUIRE(runs->size() == 5u);
  BOOST_TEST((*runs)[0].failed);
  BOOST_TEST((*runs)[0].hosts == (HostSet{4, 5, 6, 7}), boost::test_tools::per_element());
  BOOST_TEST((*runs)[1].hosts == (HostSet{2, 6, 10, 14}), boost::test_tools::per_element());
  BOOST_TEST((*runs)[2].hosts == (HostSet{1, 5}), boost::test_tools::per_element());
  BOOST_TEST((*runs)[3].hosts == (HostSet{1, 5}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(wrong_results_are_refused_with_their_line) {
  const Plan plan = plan_with(16, 4);
  for (const ResultCase& one : kWrongResults) {
    const auto runs = read_results(one.text, plan);
    BOOST_REQUIRE_MESSAGE(!runs, one.text);
    BOOST_TEST((runs.error().text.find(one.error) != std::string::npos), runs.error().text);
  }
}

BOOST_AUTO_TEST_CASE(the_posterior_is_that_of_the_formula) {
  // Two hosts, one run of the first alone that failed.
  Posterior posterior(2, {0.8, 0.1});
  posterior.add({0}, true);
  const Summary s = posterior.summary(10);
  const double no = 0.05 * 0.1, shown = 1 - 0.9 * 0.2, job = 0.1 * shown;
  const double first = 0.3 * shown, second = 0.3 * 0.1, both = 0.25 * shown;
  const double all = no + job + first + second + both;
  BOOST_TEST(s.no_host == no / all, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(s.job == job / all, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(s.of_host[0] == (first + both) / all, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(s.of_host[1] == (second + both) / all, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(s.log_evidence == std::log(all), boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(one_host_at_fault_is_named_after_two_phases) {
  for (const uint32_t hosts : {16u, 18u, 64u}) {
    const Plan plan = plan_with(hosts, 0);
    for (const uint32_t faulty : {0u, 7u, hosts - 1}) {
      const Judgement j = judge(plan, both_phases(plan, {faulty}), {});
      BOOST_CHECK(j.verdict == Verdict::kHosts);
      BOOST_TEST(j.named == HostSet{faulty}, boost::test_tools::per_element());
      BOOST_TEST(j.summary.of_host[faulty] > 0.95);
      BOOST_TEST(j.next.groups.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(two_hosts_at_fault_leave_four_and_one_more_round_returns_the_innocent) {
  const Plan plan = plan_with(64, 8);
  const std::set<uint32_t> faulty{3, 44};
  std::vector<GroupRun> runs = both_phases(plan, faulty);
  const Judgement open = judge(plan, runs, {});
  BOOST_CHECK(open.verdict == Verdict::kUndecided);
  BOOST_TEST(intersection_of(plan, runs).size() == 4u);
  BOOST_TEST(open.candidates.size() == 4u);
  BOOST_TEST(open.next_phase == 3u);
  add_round(open.next, 3, faulty, runs);
  const Judgement j = judge(plan, runs, {});
  BOOST_CHECK(j.verdict == Verdict::kHosts);
  BOOST_TEST(j.named == (HostSet{3, 44}), boost::test_tools::per_element());
  BOOST_TEST(j.returned == (HostSet{4, 43}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(groups_too_large_for_one_common_host_are_told_apart_by_further_rounds) {
  const Plan plan = plan_with(16, 8);
  for (uint32_t faulty = 0; faulty < 16; ++faulty) {
    std::vector<GroupRun> runs = both_phases(plan, {faulty});
    Judgement j = judge(plan, runs, {});
    for (uint32_t phase = 3; phase < 8 && j.verdict == Verdict::kUndecided; ++phase) {
      add_round(j.next, phase, {faulty}, runs);
      j = judge(plan, runs, {});
    }
    BOOST_CHECK(j.verdict == Verdict::kHosts);
    BOOST_TEST(j.named == HostSet{faulty}, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(no_failure_names_no_host_and_says_how_often_each_ran) {
  const Plan plan = plan_with(16, 4);
  const Judgement j = judge(plan, both_phases(plan, {}), {0.3, 0.01});
  BOOST_CHECK(j.verdict == Verdict::kNotReproduced);
  BOOST_TEST(j.named.empty());
  BOOST_TEST(j.runs_least == 2u);
  BOOST_TEST(!j.next.groups.empty());
  BOOST_TEST(j.summary.one + j.summary.two > 0.3);
  BOOST_TEST(repeats_for(0.3, 0.95) == 9u);
  BOOST_TEST(repeats_for(1, 0.95) == 1u);
}

BOOST_AUTO_TEST_CASE(failures_of_all_groups_are_the_jobs) {
  const Plan plan = plan_with(16, 4);
  std::vector<GroupRun> runs = both_phases(plan, {});
  for (GroupRun& run : runs) run.failed = true;
  const Judgement j = judge(plan, runs, {});
  BOOST_CHECK(j.verdict == Verdict::kJob);
  BOOST_TEST(j.named.empty());
}

BOOST_AUTO_TEST_CASE(three_hosts_at_fault_are_told_as_more_than_two) {
  const Plan plan = plan_with(64, 8);
  const Judgement j = judge(plan, both_phases(plan, {0, 20, 50}), {});
  BOOST_TEST(j.unexplained > 0u);
  BOOST_TEST(j.too_many);
}

BOOST_AUTO_TEST_CASE(results_that_fit_another_share_better_say_so) {
  const Plan plan = plan_with(16, 4);
  std::vector<GroupRun> runs;
  for (uint32_t repeat = 0; repeat < 9; ++repeat)
    for (GroupRun run : both_phases(plan, {5})) {
      run.failed = run.failed && repeat % 3 == 0;
      runs.push_back(run);
    }
  const Judgement j = judge(plan, runs, {});
  BOOST_TEST(j.mixed.size() == 2u);
  BOOST_TEST(j.better_shows == 0.3);
  const Judgement fitting = judge(plan, runs, {0.3, 0.01});
  BOOST_TEST(fitting.better_shows == 0);
  BOOST_TEST(fitting.candidates.front() == 5u);
  BOOST_TEST(fitting.summary.of_host[5] > 0.95);
}

BOOST_AUTO_TEST_CASE(the_phase_that_did_not_run_comes_next) {
  const Plan plan = plan_with(16, 4);
  std::vector<GroupRun> runs = both_phases(plan, {5});
  runs.resize(4);
  const Judgement j = judge(plan, runs, {});
  BOOST_TEST(j.next_phase == 2u);
  BOOST_TEST(j.next.groups == groups_of(plan, 2));
}

BOOST_AUTO_TEST_CASE(the_next_round_is_the_same_each_time_and_has_full_groups_without_common_hosts) {
  const Plan plan = plan_with(50, 7);
  const Judgement j = judge(plan, both_phases(plan, {3, 44}), {});
  const Round again = next_round(plan, j.summary, {});
  BOOST_TEST(j.next.groups == again.groups);
  BOOST_TEST(j.next.bits > 0.5);
  std::set<uint32_t> seen;
  size_t hosts = 0;
  for (const HostSet& group : j.next.groups) {
    hosts += group.size();
    seen.insert(group.begin(), group.end());
  }
  BOOST_TEST(seen.size() == hosts);
}

BOOST_AUTO_TEST_SUITE_END()
