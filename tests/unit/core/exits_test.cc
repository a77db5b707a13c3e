// Launchers' messages about ended processes: the cause if there is one, and its host.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "culprit/embed.h"

namespace {

struct Log {
  std::string host, text;
  int rank = -1;
};

std::string verdict_on(const std::vector<Log>& logs) {
  culprit_job* job = culprit_create(nullptr, nullptr, 0);
  for (const Log& log : logs) {
    const std::string name = log.host + "_" + std::to_string(log.rank) + ".log";
    const culprit_source info{sizeof info, name.c_str(), log.host.empty() ? nullptr : log.host.c_str(),
                              log.rank, -1};
    const int source = culprit_open(job, &info);
    culprit_feed(job, source, log.text.data(), log.text.size());
    culprit_close(job, source);
  }
  char* text = culprit_report(job);
  std::string report = text;
  culprit_free(text);
  culprit_destroy(job);
  const size_t title = report.find("\"title\":");
  return title == report.npos ? std::string() : report.substr(title, 200);
}

std::string verdict_on(const std::string& log) { return verdict_on(std::vector<Log>{{"", log}}); }

struct Row {
  const char* log;
  const char* output;
};

const std::string kLost =
    "RuntimeError: [gloo/transport/tcp/pair.cc:589] Read error [10.0.0.3]:5906: Connection reset by peer\n";

}  // namespace

BOOST_AUTO_TEST_SUITE(exits)

BOOST_AUTO_TEST_CASE(an_exit_by_signal_in_any_words_leads_a_lost_peer) {
  const Row rows[] = {
      {"main: worker w1 exited with code -11\n", "Process crashed (segmentation fault): worker 1"},
      {"rank 5 (pid 7712) terminated by signal 9\n", "Process was killed by SIGKILL"},
      {"command terminated with exit code 137\n", "Process was killed by SIGKILL"},
      {"subprocess.CalledProcessError: Command 'train.py' died with <Signals.SIGSEGV: 11>.\n",
       "Process crashed (segmentation fault)"},
      {"worker w1 exited with code 3\n", "Rank ended by itself: exit code 3, worker 1"},
  };
  for (const Row& row : rows) BOOST_TEST(verdict_on(kLost + row.log).find(row.output) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_first_task_that_srun_sees_fail_owns_the_exception_above_it) {
  const std::string exception =
      "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    main()\n"
      "ValueError: bad label\n";
  const std::string first = "srun: error: n1: task 1: Exited with exit code 1\n";
  BOOST_TEST(verdict_on(exception + first).find("bad label, rank 1") != std::string::npos);
  const std::string several = "srun: error: n1: tasks 0-3: Exited with exit code 1\n";
  BOOST_TEST(verdict_on(exception + several).find("rank") == std::string::npos);
  BOOST_TEST(verdict_on(exception + exception + first).find(", rank 1") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_silent_rank_is_the_cause_unless_a_kill_elsewhere_came_before_its_peers_lost_it) {
  std::vector<Log> logs;
  for (int rank = 0; rank < 4; ++rank) {
    Log log{"node-" + std::to_string(rank), "", rank};
    for (int s = 10; s < 40; ++s)
      log.text += "2026-11-21 02:00:" + std::to_string(s) + " INFO step=" + std::to_string(s) + " loss=2.1\n";
    if (rank > 0) log.text += "2026-11-21 02:00:52 " + kLost;
    logs.push_back(log);
  }
  BOOST_TEST(verdict_on(logs).find("Rank 0 stopped without a message") != std::string::npos);
  const auto with_kill_at = [&](const char* second) {
    std::vector<Log> out = logs;
    out.push_back({"node-2", std::string("2026-11-21 02:00:") + second +
                                 " ERROR worker local_rank 0 (pid 375) was sent SIGKILL (exitcode -9)\n"});
    return verdict_on(out);
  };
  BOOST_TEST(with_kill_at("45").find("Process was killed by SIGKILL") != std::string::npos);
  BOOST_TEST(with_kill_at("55").find("Rank 0 stopped without a message") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
