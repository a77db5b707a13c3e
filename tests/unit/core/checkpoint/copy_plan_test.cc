#include "core/checkpoint/copy_plan.h"

#include <boost/test/unit_test.hpp>
#include <set>

namespace culprit::checkpoint {
namespace {

JobFile job_of(uint32_t hosts, uint32_t ranks_per_host, Parallel parallel) {
  JobFile job;
  for (uint32_t i = 0; i < hosts; ++i) job.hosts.push_back("node-" + std::to_string(i));
  job.ranks_per_host = ranks_per_host;
  job.parallel = parallel;
  return job;
}

CopyPlan plan_of(const JobFile& job) {
  const auto groups = host_groups(job);
  BOOST_REQUIRE(groups);
  auto plan = plan_copies(static_cast<uint32_t>(job.hosts.size()), *groups);
  BOOST_REQUIRE(plan);
  return *plan;
}

BOOST_AUTO_TEST_CASE(a_partner_is_outside_all_parallel_groups_where_one_exists) {
  struct Row {
    uint32_t hosts, ranks;
    Parallel parallel;
    uint32_t sharing;
  };
  const Row rows[] = {
      {16, 8, {.tp = 8, .pp = 4, .dp = 4}, 0},      {16, 8, {.tp = 4, .pp = 4, .dp = 8}, 0},
      {1200, 8, {.tp = 8, .pp = 12, .dp = 100}, 0}, {12, 8, {.tp = 8, .pp = 2, .dp = 6}, 0},
      {4, 8, {.tp = 8, .pp = 2, .dp = 2}, 0},       {6, 1, {.tp = 1, .pp = 2, .dp = 3}, 0},
      {8, 8, {.tp = 8, .pp = 1, .dp = 8}, 8},       {8, 8, {.tp = 8, .pp = 8, .dp = 1}, 8},
      {2, 8, {.tp = 8, .pp = 1, .dp = 2}, 2},
  };
  for (const Row& row : rows)
    BOOST_TEST_CONTEXT(row.hosts << " hosts, pp " << row.parallel.pp << ", dp " << row.parallel.dp) {
      const CopyPlan plan = plan_of(job_of(row.hosts, row.ranks, row.parallel));
      BOOST_TEST(plan.sharing == row.sharing);
      std::map<uint32_t, uint32_t> received;
      for (uint32_t host = 0; host < row.hosts; ++host) {
        BOOST_TEST(plan.partners[host].to != host);
        BOOST_TEST(plan.partners[host].to < row.hosts);
        ++received[plan.partners[host].to];
      }
      for (const auto& [_, n] : received) BOOST_TEST(n <= 2u);
      BOOST_TEST(plan.receives_most ==
                 std::ranges::max_element(received, {}, [](const auto& e) { return e.second; })->second);
    }
}

BOOST_AUTO_TEST_CASE(the_same_job_has_the_same_plan) {
  const JobFile job = job_of(24, 8, {.tp = 8, .pp = 4, .dp = 6});
  const CopyPlan a = plan_of(job), b = plan_of(job);
  for (size_t i = 0; i < 24; ++i) BOOST_TEST(a.partners[i].to == b.partners[i].to);
}

BOOST_AUTO_TEST_CASE(where_all_hosts_share_a_group_the_larger_one_is_shared) {
  // Two pairs within one group of all.
  const std::vector<HostGroup> groups{{"dp", {0, 1, 2, 3}}, {"pp", {0, 1}}, {"pp", {2, 3}}};
  const auto plan = plan_copies(4, groups);
  BOOST_REQUIRE(plan);
  for (const CopyPartner& partner : plan->partners)
    BOOST_TEST(partner.shared == std::vector<std::string>{"dp"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_impossible_plan_is_an_error) {
  BOOST_TEST(!plan_copies(1, {}));
  BOOST_TEST(!plan_copies(2, {{"dp", {0, 2}}}));
  BOOST_TEST(!plan_copies(kPlanHosts + 1, {}));
  BOOST_TEST(!host_groups(JobFile{}));
  BOOST_TEST(!host_groups(job_of(4, 8, {.tp = 8, .pp = 3, .dp = 1})));
}

}  // namespace
}  // namespace culprit::checkpoint
