// What members and the coordinator of a sweep say, the meeting file, and connections of strangers.
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <thread>

#include "app/sweep/coordinator.h"
#include "app/sweep/launch.h"
#include "app/sweep/member.h"
#include "app/sweep/messages.h"
#include "app/sweep/wire.h"
#include "base/clock.h"

using namespace culprit;
using namespace culprit::app::sweeping;

namespace {

const char* const kSweepSecret = "0123456789abcdef";

const char* const kWrongMessages[] = {"",
                                      "hello",
                                      "hello 0 1 n0 -",
                                      "hello -1 1 n0 - -",
                                      "hello 0 0 n0 - -",
                                      "hello 0 65536 n0 - -",
                                      "hello 0 1 n;0 - -",
                                      "hello 2048 1 n0 - -",
                                      "pair 1 1 - 5 100 100",
                                      "pair 0 0 - 0 100 100",
                                      "pair 1 2 a 5 100 100",
                                      "pair 1 1 a 5 0 100",
                                      "pair 1 1 a 5 99999999999999 100",
                                      "done 1 measured 1 10 11 5 0 0 -1",
                                      "done 1 maybe 1 10 1 5 0 0 -1",
                                      "done 1 measured 1 10 1 -5 0 0 -1",
                                      "done 1 measured 1 10 1 5 0 0 -1 more",
                                      "end 1 4 0 0 0 0",
                                      "end 1 1 0 0 nan 0",
                                      "end 1 1 0 0 -1 0",
                                      "stop"};
const char* const kWrongMeetings[] = {"",
                                      "culprit-sweep/1 1 0123456789abcdef a",
                                      "culprit-sweep/2 1 0123456789abcdef a\n",
                                      "culprit-sweep/1 0 0123456789abcdef a\n",
                                      "culprit-sweep/1 70000 0123456789abcdef a\n",
                                      "culprit-sweep/1 1 short a\n",
                                      "culprit-sweep/1 1 0123456789abcdef\n",
                                      "culprit-sweep/1 1 0123456789abcdef a;b\n"};

template <class Kind>
Kind back(const Kind& message) {
  std::string line = to_line(message);
  line.pop_back();
  const auto parsed = parse_message(line);
  BOOST_REQUIRE_MESSAGE(parsed, line);
  BOOST_REQUIRE(std::holds_alternative<Kind>(*parsed));
  BOOST_TEST(to_line(*parsed) == line + "\n");
  return std::get<Kind>(*parsed);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sweep_messages)

BOOST_AUTO_TEST_CASE(messages_come_back_as_they_were) {
  BOOST_TEST(back(Hello{7, 4000, "n7.site", "fe80::1", "job 5 of anna\nruns"}).busy == "job 5 of anna runs");
  BOOST_TEST(back(Task{9, true, "10.0.0.7", 4000, 1 << 20, 2000}).address == "10.0.0.7");
  BOOST_TEST(back(Done{9, Done::Answer::kUnreached, true, 100, 3, 5, 6, 7, kNoTime}).latency_ns == kNoTime);
  BOOST_TEST(back(End{true, sweep::Trouble::kWrongBytes, 3, 7, 1.5, 2e9}).usual == 2e9);
}

BOOST_DATA_TEST_CASE(a_message_of_another_form_is_refused, boost::unit_test::data::make(kWrongMessages)) {
  BOOST_TEST(!parse_message(sample));
}

BOOST_DATA_TEST_CASE(a_meeting_file_of_another_form_is_refused,
                     boost::unit_test::data::make(kWrongMeetings)) {
  BOOST_TEST(!parse_meeting(sample));
}

BOOST_AUTO_TEST_CASE(a_meeting_file_is_of_its_user_alone) {
  char folder[] = "/tmp/culprit-sweep-XXXXXX";
  BOOST_REQUIRE(::mkdtemp(folder));
  const std::string path = std::string(folder) + "/meet";
  BOOST_TEST(!read_meeting(path));
  BOOST_REQUIRE(write_meeting(path, {{"n0", "10.0.0.1"}, 4000, kSweepSecret}));
  const auto read = read_meeting(path);
  BOOST_REQUIRE(read);
  BOOST_TEST(read->addresses.size() == 2u);
  BOOST_TEST(read->secret == kSweepSecret);
  BOOST_REQUIRE(::chmod(path.c_str(), 0640) == 0);
  BOOST_TEST(!read_meeting(path));
  BOOST_REQUIRE(::rename(path.c_str(), (path + "2").c_str()) == 0);
  BOOST_REQUIRE(::symlink((path + "2").c_str(), path.c_str()) == 0);
  BOOST_TEST(!read_meeting(path));
  (void)::unlink(path.c_str());
  (void)::unlink((path + "2").c_str());
  (void)::rmdir(folder);
}

BOOST_AUTO_TEST_CASE(members_with_the_secret_measure_and_strangers_do_not_join) {
  auto listener = Listener::open("127.0.0.1", 0);
  BOOST_REQUIRE(listener);
  const uint16_t port = listener->port();
  const auto member = [port](uint32_t rank, const std::string& secret, TimeNs within) {
    const auto find = [&] { return std::optional(Meeting{"127.0.0.1", port, secret}); };
    return run_member({rank, "n" + std::to_string(rank), "127.0.0.1", ""}, find, steady_now() + within);
  };
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 3; ++rank)
    threads.emplace_back(
        [&, rank] { BOOST_TEST(member(rank, kSweepSecret, 10 * kNsPerSecond).has_value()); });
  threads.emplace_back([&] { BOOST_TEST(!member(3, "another secret 12", 300 * kNsPerMs)); });
  SweepOptions options;
  options.size = 4;
  options.secret = kSweepSecret;
  options.join_within_ns = kNsPerSecond;
  options.bytes = 1 << 20;
  const auto result = coordinate(*listener, options);
  for (std::thread& one : threads) one.join();
  BOOST_REQUIRE(result);
  BOOST_TEST(result->ranks.size() == 3u);
  BOOST_TEST(result->verdict.measured == 3u);
  BOOST_TEST(!result->members[3].joined);
  for (const sweep::PairRun& run : result->runs) {
    BOOST_TEST(run.to_a.wrong + run.to_b.wrong == 0u);
    BOOST_TEST(run.to_a.bytes == options.bytes);
  }
}

BOOST_AUTO_TEST_CASE(place_is_as_the_launcher_says) {
  const auto with = [](std::map<std::string, std::string, std::less<>> variables) {
    return place_of([variables](std::string_view name) {
      const auto at = variables.find(name);
      return at == variables.end() ? std::nullopt : std::optional(at->second);
    });
  };
  const Place slurm = with({{"SLURM_PROCID", "3"},
                            {"SLURM_STEP_NUM_TASKS", "8"},
                            {"SLURM_JOB_ID", "77"},
                            {"SLURM_STEP_ID", "2"},
                            {"SLURMD_NODENAME", "n4"}});
  BOOST_TEST(slurm.rank == 3u);
  BOOST_TEST(slurm.size == 8u);
  BOOST_TEST(slurm.host == "n4");
  BOOST_TEST(slurm.job == "77.2");
  const Place mpi =
      with({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "5"}});
  BOOST_TEST(mpi.from == "Open MPI");
  BOOST_TEST(mpi.job == "5");
  BOOST_TEST(with({}).size == 0u);
  BOOST_TEST(with({{"SLURM_PROCID", "8"}, {"SLURM_NTASKS", "8"}}).size == 0u);
  BOOST_TEST(with({{"SLURM_PROCID", "x"}, {"SLURM_NTASKS", "99999999999"}}).size == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
