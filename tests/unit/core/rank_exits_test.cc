// A rank that dies without a message, in an engine: its process is gone, and its peers lose their
// connections.
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include "core/engine.h"
#include "model/report_json.h"

using namespace culprit;
using namespace culprit::core;

namespace {

constexpr TimeNs kStart = 1'795'226'400 * kNsPerSecond;  // 2026-11-21 02:00:00
constexpr uint32_t kRanks = 4;

class Job {
 public:
  Job() : engine_(options()), parser_(logs::ParseOptions{}, engine_.make_scanner()) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      SourceInfo info;
      info.file = fmt::format("rank_{}.log", rank);
      info.host = "node-0";
      info.rank = rank;
      infos_.push_back(info);
      give(SourceOpened{info}, 0);
    }
    for (int64_t second = 0; second < 40; ++second)
      for (uint32_t rank = 0; rank < kRanks; ++rank)
        write(rank, second, fmt::format("INFO step={} loss=2.{}", second, second % 10));
  }
  void write(uint32_t rank, int64_t second, const std::string& line) {
    const std::string text = format_time(kStart + second * kNsPerSecond).substr(0, 19) + " " + line + "\n";
    parser_.parse({rank, 0, 0, text, text.size(), false}, infos_[rank], batch_);
    give(LogInput{&batch_}, second);
  }
  void exits(uint32_t rank, int64_t second) { give(detect::RankExited{rank, "node-0", 4700 + rank}, second); }
  void loses_connection(uint32_t rank, int64_t second) {
    write(rank, second,
          "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer "
          "[127.0.0.1]:29500");
  }
  Report report() { return engine_.report(); }

 private:
  static EngineOptions options() {
    EngineOptions out;
    out.rules = rules::Ruleset::shipped();
    out.live = true;
    return out;
  }
  void give(Input input, int64_t second) { engine_.step({&input, 1}, kStart + second * kNsPerSecond); }

  Engine engine_;
  logs::LineParser parser_;
  logs::LogBatch batch_;
  std::vector<SourceInfo> infos_;
};

const Diagnosis* silent_death(const Report& report) {
  for (const Diagnosis& d : report.diagnoses)
    if (d.title.find("ended without a message") != std::string::npos) return &d;
  return nullptr;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rank_exits)

BOOST_AUTO_TEST_CASE(a_rank_that_ends_without_a_word_is_named_and_its_peers_are_not) {
  Job job;
  job.exits(2, 41);
  for (const uint32_t rank : {0u, 1u, 3u}) {
    job.loses_connection(rank, 41);
    job.exits(rank, 42);
  }
  const Report report = job.report();
  BOOST_REQUIRE_MESSAGE(report.verdict, to_json(report));
  const Diagnosis& d = report.diagnoses[*report.verdict];
  BOOST_TEST(d.title == "Rank 2 (node-0, pid 4702) ended without a message at 02:00:41 UTC");
  BOOST_TEST((d.category == Category::kUnknown));
  BOOST_REQUIRE(d.hosts.size() == 1u);
  BOOST_TEST((d.hosts[0].ranks == std::vector<uint32_t>{2}), to_json(report));
}

BOOST_AUTO_TEST_CASE(ranks_that_end_and_are_not_missed_are_no_fault) {
  Job job;
  for (uint32_t rank = 1; rank < kRanks; ++rank) job.exits(rank, 40);
  BOOST_TEST(!silent_death(job.report()), "rank 0 ends last");
  job.exits(0, 60);
  BOOST_TEST(!silent_death(job.report()));
}

BOOST_AUTO_TEST_CASE(one_that_says_why_it_ends_is_not_silent) {
  Job job;
  job.write(2, 40, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB");
  job.exits(2, 41);
  job.loses_connection(1, 41);
  BOOST_TEST(!silent_death(job.report()));
}

BOOST_AUTO_TEST_CASE(one_that_ends_after_a_rank_with_words_was_ended_with_it) {
  Job job;
  job.write(2, 40, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB");
  job.exits(2, 41);
  job.loses_connection(1, 42);
  job.exits(3, 43);
  BOOST_TEST(!silent_death(job.report()));
}

BOOST_AUTO_TEST_CASE(one_that_its_launcher_ended_is_not_named) {
  Job job;
  job.loses_connection(1, 40);
  job.write(
      0, 41,
      "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 4702 closing signal SIGTERM");
  job.exits(2, 41);
  BOOST_TEST(!silent_death(job.report()));
}

BOOST_AUTO_TEST_CASE(the_exit_code_that_a_launcher_states_is_named_and_the_job_had_started) {
  Job job;
  job.exits(2, 41);
  job.loses_connection(1, 41);
  job.write(0, 42, "  exitcode  : 3 (pid: 4702)");
  const Report report = job.report();
  BOOST_REQUIRE_MESSAGE(report.verdict, to_json(report));
  const Diagnosis& d = report.diagnoses[*report.verdict];
  BOOST_TEST(d.title ==
             "Rank 2 (node-0, pid 4702) ended with exit code 3 and without a message at 02:00:41 UTC");
  BOOST_TEST((d.symptom == Symptom::kCrash));
}

BOOST_AUTO_TEST_CASE(a_job_that_goes_on_was_not_hurt) {
  Job job;
  job.exits(2, 41);
  job.loses_connection(1, 41);
  BOOST_TEST(silent_death(job.report()));
  for (int64_t second = 42; second < 120; ++second)
    for (const uint32_t rank : {0u, 1u, 3u})
      job.write(rank, second, fmt::format("INFO step={} loss=2.1", second));
  BOOST_TEST(!silent_death(job.report()));
}

BOOST_AUTO_TEST_SUITE_END()
