#include "model/topology.h"

#include <boost/test/unit_test.hpp>
#include <string>

namespace culprit {
namespace {

constexpr std::string_view kFull = R"([job]
id = "llama-70b-0412"
hosts = ["node-0", "node-1"]
host_pattern = 'worker_(?P<host>\d+)\.log'
rank_pattern = 'r(?P<rank>\d+)'
ranks_per_host = 8
newer = [1, 2]
[parallel]
tp = 4
pp = 2
[code]
revision = "3f9c2e1"
last_good = "a07b11d"
[unknown]
x = 1
)";

BOOST_AUTO_TEST_CASE(each_key_is_read_and_unknown_ones_are_passed_over) {
  const auto job = parse_job_file(kFull, "job.toml");
  BOOST_REQUIRE(job.has_value());
  BOOST_TEST(*job->id == "llama-70b-0412");
  BOOST_TEST(job->hosts == (std::vector<std::string>{"node-0", "node-1"}), boost::test_tools::per_element());
  BOOST_TEST(*job->host_pattern == R"(worker_(?P<host>\d+)\.log)");
  BOOST_TEST(*job->rank_pattern == R"(r(?P<rank>\d+))");
  BOOST_TEST(*job->ranks_per_host == 8u);
  BOOST_TEST(job->parallel->tp == 4u);
  BOOST_TEST(job->parallel->pp == 2u);
  BOOST_TEST(job->parallel->dp == 1u);
  BOOST_TEST(*job->revision == "3f9c2e1");
  BOOST_TEST(*job->last_good == "a07b11d");
}

BOOST_AUTO_TEST_CASE(an_empty_file_says_nothing) {
  const auto job = parse_job_file("", "job.toml");
  BOOST_REQUIRE(job.has_value());
  BOOST_TEST((!job->id && job->hosts.empty() && !job->parallel && !job->ranks_per_host && !job->revision));
}

BOOST_AUTO_TEST_CASE(errors_name_file_place_and_key) {
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {
      {"[job]\nid = 3", "d/job.toml:2:6: 'id' must be a string"},
      {"[job]\nhosts = 'a'", "d/job.toml:2:9: 'hosts' must be an array of strings"},
      {"[job]\nhosts = ['a', 1]", "d/job.toml:2:15: 'hosts' must hold strings only"},
      {"[job]\nhosts = ['a', '']", "d/job.toml:2:15: 'hosts' holds a name that is empty or too long"},
      {"[job]\nhosts = ['a', 'a']", "d/job.toml:2:9: 'hosts' names 'a' twice"},
      {"[job]\nranks_per_host = 0",
       "d/job.toml:2:18: 'ranks_per_host' must be a whole number from 1 to 4096"},
      {"[job]\nranks_per_host = 1.5",
       "d/job.toml:2:18: 'ranks_per_host' must be a whole number from 1 to 4096"},
      {"[parallel]\ntp = -1", "d/job.toml:2:6: 'tp' must be a whole number from 1 to 1000000"},
      {"job = 3", "d/job.toml:1:7: 'job' must be a table"},
      {"[code]\nrevision = []", "d/job.toml:2:12: 'revision' must be a string"}};
  for (const auto& [text, expected] : kCases) {
    const auto job = parse_job_file(text, "d/job.toml");
    BOOST_REQUIRE_MESSAGE(!job, text);
    BOOST_TEST(job.error().text == expected);
  }
  const auto broken = parse_job_file("[job\nid = 1", "d/job.toml");
  BOOST_REQUIRE(!broken);
  BOOST_TEST(broken.error().text.starts_with("d/job.toml:1:"));
}

BOOST_AUTO_TEST_CASE(a_file_beyond_the_limit_is_refused) {
  const std::string huge((16 << 20) + 1, '\n');
  const auto job = parse_job_file(huge, "job.toml");
  BOOST_REQUIRE(!job);
  BOOST_TEST((job.error().code == ErrorCode::kLimit));
}

BOOST_AUTO_TEST_CASE(ranks_and_hosts_give_each_other) {
  const auto job = parse_job_file(kFull, "job.toml");
  BOOST_REQUIRE(job.has_value());
  BOOST_TEST(*host_of_rank(*job, 0) == "node-0");
  BOOST_TEST(*host_of_rank(*job, 8) == "node-1");
  BOOST_TEST(!host_of_rank(*job, 16));
  BOOST_TEST(*device_of_rank(*job, 11) == 3u);
  BOOST_TEST(!device_of_rank(*job, 16));
  BOOST_TEST(*rank_of_local(*job, "node-1", 3) == 11u);
  BOOST_TEST(!rank_of_local(*job, "node-1", 8));
  BOOST_TEST(!rank_of_local(*job, "node-9", 0));
}

BOOST_AUTO_TEST_CASE(without_ranks_per_host_nothing_is_guessed) {
  const auto job = parse_job_file("[job]\nhosts = ['a']", "job.toml");
  BOOST_REQUIRE(job.has_value());
  BOOST_TEST((!host_of_rank(*job, 0) && !device_of_rank(*job, 0) && !rank_of_local(*job, "a", 0)));
}

}  // namespace
}  // namespace culprit
