#include "app/offline/job_split.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

// A log of ten minutes, from the given hour on.
struct Log {
  std::string name;
  int hour = -1;  // no time
};

struct Tree {
  fs::path path;
  explicit Tree(const std::vector<Log>& logs) {
    std::string name = (fs::temp_directory_path() / "culprit-split-XXXXXX").string();
    path = mkdtemp(name.data());
    for (const Log& log : logs) {
      fs::create_directories((path / log.name).parent_path());
      std::ofstream out(path / log.name);
      for (int minute = 0; minute < 10; ++minute) {
        if (log.hour >= 0) out << fmt::format("2026-11-21 {:02}:{:02}:00,000 ", log.hour, minute);
        out << fmt::format("INFO iteration {}/ 10\n", minute);
      }
    }
  }
  ~Tree() { fs::remove_all(path); }
};

// "id: files; ..." of the jobs, with "?" before a doubtful job.
std::string jobs_of(const std::vector<Log>& logs) {
  const Tree tree(logs);
  std::string out;
  for (const JobPaths& job : split_jobs({tree.path.string()}))
    out += fmt::format("{}{}{}:{}", out.empty() ? "" : "; ", job.note.empty() ? "" : "?", job.id,
                       job.files.size());
  return out;
}

BOOST_AUTO_TEST_CASE(the_jobs_that_file_names_number_are_distinguished) {
  BOOST_TEST(jobs_of({{"slurm-123.out", 1}, {"slurm-124.out", 2}}) == "123:1; 124:1");
  BOOST_TEST(jobs_of({{"slurm-123.out"}, {"slurm-123.err"}, {"slurm-124.out"}}) == "123:2; 124:1");
  BOOST_TEST(jobs_of({{"train.o1234", 1}, {"train.e1234", 1}, {"train.o1235", 1}}) == "1234:2; 1235:1");
  BOOST_TEST(jobs_of({{"train_4811_node-1.out", 1},
                      {"train_4811_node-2.out", 1},
                      {"train_4812_node-1.out", 3},
                      {"train_4812_node-2.out", 3}}) == "4811:2; 4812:2");
  BOOST_TEST(jobs_of({{"slurm-123.out", 1}, {"slurm-124.out", 2}, {"notes.txt"}}) == "123:1; 124:1; :1");
}

BOOST_AUTO_TEST_CASE(folders_that_repeat_global_ranks_on_other_hosts_are_jobs) {
  BOOST_TEST(jobs_of({{"train-a/gpu011/rank_0.log", 1},
                      {"train-a/gpu012/rank_1.log", 1},
                      {"train-b/gpu021/rank_0.log", 1},
                      {"train-b/gpu022/rank_1.log", 1}}) == "train-a:2; train-b:2");
  // Ranks that each host counts from 0 tell nothing.
  BOOST_TEST(jobs_of({{"rack-a/gpu011/rank_0.log", 1},
                      {"rack-a/gpu012/rank_0.log", 1},
                      {"rack-b/gpu021/rank_0.log", 1},
                      {"rack-b/gpu022/rank_0.log", 1}}) == ":0");
  // Nor do ranks that count on from one folder to the other.
  BOOST_TEST(jobs_of({{"rack-a/gpu011/rank_0.log", 1},
                      {"rack-a/gpu012/rank_1.log", 1},
                      {"rack-b/gpu021/rank_2.log", 1},
                      {"rack-b/gpu022/rank_3.log", 1}}) == ":0");
}

BOOST_AUTO_TEST_CASE(one_job_stays_one) {
  const std::vector<std::vector<Log>> kJobs = {
      {{"slurm-123.out", 1}, {"slurm-123.err", 1}, {"train.log", 2}},
      {{"node-1/train.log", 1}, {"node-2/train.log", 1}},
      {{"dgx-h100-001/rank_0.log", 1}, {"dgx-h100-002/rank_1.log", 3}},
      {{"alpha/train.log", 1}, {"beta/train.log", 1}},  // hosts without a number run at the same time
      {{"stdout/node-1.log", 1}, {"stderr/node-1.log", 2}},
      {{"attempt_0/node-1.log", 1}, {"attempt_1/node-1.log", 2}},
      {{"nccl.12345.node17", 1}, {"nccl.12399.node18", 1}},  // processes
      {{"nccl.12345.node17", 1}, {"nccl.12399.node17", 1}, {"nccl.777.node18", 1}},
      {{"train_20261120_node-1.log", 1}, {"train_20261121_node-1.log", 2}},  // a log a day
      {{"a.log", 1}, {"b.log", 2}},
      {{"train.log", 1}, {"train.log.1", 0}},
      {{"kern/messages", 1}, {"train/train.log", 1}}};
  for (const std::vector<Log>& job : kJobs) BOOST_TEST(jobs_of(job) == ":0", job[0].name);
}

BOOST_AUTO_TEST_CASE(run_folders_are_distinguished_by_their_names_or_their_times) {
  BOOST_TEST(
      jobs_of(
          {{"run1/node-1.log", 1}, {"run1/node-2.log", 1}, {"run2/node-1.log", 1}, {"run2/node-2.log", 1}}) ==
      "run1:2; run2:2");
  BOOST_TEST(jobs_of({{"old-lr/train.log", 1}, {"new-lr/train.log", 2}}) ==
             ":0");  // "old" is a part of a run
  BOOST_TEST(jobs_of({{"base/train.log", 1}, {"wide/train.log", 2}}) == "base:1; wide:1");
  BOOST_TEST(jobs_of({{"base/train.log"}, {"wide/train.log"}}) == ":0");
}

BOOST_AUTO_TEST_CASE(where_it_is_not_sure_the_job_is_one_and_the_doubt_is_reported) {
  BOOST_TEST(jobs_of({{"node-1/slurm-123.out", 1}, {"node-2/slurm-124.out", 1}}) == "?:0");
  BOOST_TEST(jobs_of({{"2026-11-20/train.log", 1}, {"2026-11-21/train.log", 2}}) == "?:0");
}

}  // namespace
}  // namespace culprit::app
