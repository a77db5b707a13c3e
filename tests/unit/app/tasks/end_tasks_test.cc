// Real processes of this test are ended, and others are not.
#include "app/tasks/end_tasks.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "../../ingest/fixtures.h"
#include "capture/proc_text.h"
#include "capture/process.h"

using namespace culprit;
using namespace culprit::app;

namespace {

EndTarget target_of(pid_t pid) {
  const auto stat = capture::ProcessReader().stat(static_cast<uint32_t>(pid));
  BOOST_REQUIRE(stat.has_value());
  return {static_cast<uint32_t>(pid), stat->start_ticks};
}

// A process that waits, and that is killed at the end of the test.
class Sleeper {
 public:
  explicit Sleeper(bool ignores_term) {
    int ready[2];
    BOOST_REQUIRE(::pipe(ready) == 0);
    pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (ignores_term) ::signal(SIGTERM, SIG_IGN);
      if (::write(ready[1], "r", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char byte = 0;
    BOOST_REQUIRE(::read(ready[0], &byte, 1) == 1);
    ::close(ready[0]), ::close(ready[1]);
  }
  ~Sleeper() { ::kill(pid, SIGKILL), ::waitpid(pid, nullptr, 0); }
  int signal_of_end() const {
    int status = 0;
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return -1;
    status = info.si_pid == pid ? info.si_status : 0;
    return status;
  }
  pid_t pid = 0;
};

const WhyNot kAllowed = [](uint32_t) { return std::string(); };

}  // namespace

BOOST_AUTO_TEST_SUITE(end_tasks_of_a_job)

BOOST_AUTO_TEST_CASE(a_process_gets_the_time_to_end_and_is_then_killed) {
  const Sleeper obeys(false), ignores(true);
  EndRequest request{"train", 100 * kNsPerMs, {target_of(obeys.pid), target_of(ignores.pid)}};
  const EndCounts counts = end_tasks(request, kAllowed);
  BOOST_TEST((counts == EndCounts{2, 0, 0, 0, ""}));
  BOOST_TEST(obeys.signal_of_end() == SIGTERM);
  BOOST_TEST(ignores.signal_of_end() == SIGKILL);
}

BOOST_AUTO_TEST_CASE(a_stopped_process_is_ended) {
  const Sleeper stopped(true);
  ::kill(stopped.pid, SIGSTOP);
  const EndCounts counts = end_tasks({"train", 50 * kNsPerMs, {target_of(stopped.pid)}}, kAllowed);
  BOOST_TEST(counts.ended == 1);
}

BOOST_AUTO_TEST_CASE(a_later_process_with_the_same_number_lives) {
  const Sleeper other(false);
  EndTarget earlier = target_of(other.pid);
  --earlier.start_ticks;
  const EndCounts counts = end_tasks({"train", 50 * kNsPerMs, {earlier}}, kAllowed);
  BOOST_TEST((counts == EndCounts{0, 1, 0, 0, ""}));
  BOOST_TEST(other.signal_of_end() == 0);
}

BOOST_AUTO_TEST_CASE(what_may_not_be_ended_lives_and_is_counted) {
  const Sleeper other(false);
  const auto refuse = [](uint32_t) { return std::string("not of the job"); };
  const EndCounts counts = end_tasks({"train", 50 * kNsPerMs, {target_of(other.pid)}}, refuse);
  BOOST_TEST((counts == EndCounts{0, 0, 1, 0, "not of the job"}));
  BOOST_TEST(other.signal_of_end() == 0);
}

BOOST_AUTO_TEST_CASE(only_an_ordinary_users_process_of_the_job_may_be_ended) {
  const ingest::testing::TempFolder proc;
  const auto process = [&](uint32_t pid, uint32_t uid, const std::string& environment) {
    const std::string folder = proc.path() + "/" + std::to_string(pid);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/status") << "Name:\tpython\nUid:\t" << uid << "\t" << uid << "\t" << uid << "\t"
                                      << uid << "\nGid:\t1\t1\t1\t1\nTracerPid:\t0\nSigCgt:\t0\nShdPnd:\t0\n";
    std::ofstream(folder + "/environ") << environment << '\0';
    std::ofstream(folder + "/cgroup") << "0::/\n";
    if (::geteuid() == 0) BOOST_REQUIRE(::chown(folder.c_str(), uid, uid) == 0);
  };
  process(100, 1000, "SLURM_JOB_ID=77");
  process(101, 0, "SLURM_JOB_ID=77");
  process(102, 1000, "SLURM_JOB_ID=78");
  BOOST_TEST(why_not_ended(proc.path(), "77", 101) == "processes of root are never ended");
  BOOST_TEST(why_not_ended(proc.path(), "77", 103) == "it has ended");
  BOOST_TEST(why_not_ended(proc.path(), "77", 100) == "");
  BOOST_TEST(why_not_ended(proc.path(), "77", 102) == "process 102 is not of job 77");
}

BOOST_AUTO_TEST_CASE(request_and_counts_survive_their_line) {
  const EndRequest request{"tr\"ain", 2 * kNsPerSecond, {{7, 9}, {8, 10}}};
  BOOST_TEST((parse_end_request(to_line(request)).value() == request));
  const EndCounts counts{1, 2, 3, 4, "why\nnot"};
  BOOST_TEST((parse_end_counts(to_line(counts)).value() == counts));
}

const char* const kBadRequests[] = {"",
                                    "[]",
                                    "{}",
                                    R"({"job":"","targets":[]})",
                                    R"({"job":"a","targets":[{"pid":1}]})",
                                    R"({"job":"a","targets":[{"pid":-5}]})",
                                    R"({"job":"a","targets":[{"pid":4294967295}]})",
                                    R"({"job":"a","targets":[7]})"};
BOOST_DATA_TEST_CASE(a_request_that_is_none_is_refused, boost::unit_test::data::make(kBadRequests), line) {
  BOOST_TEST(!parse_end_request(line).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
