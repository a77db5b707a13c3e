// Diagnoses from logs alone: plain words accuse no host, a good end closes the case, an end without times is
// found.
#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "../fixtures.h"
#include "app/offline/diagnose.h"

using namespace culprit;
using namespace culprit::app;
using culprit::app::test::Folder;

namespace {

Report report_of(const Folder& folder, const std::vector<std::string>& healthy = {}) {
  DiagnoseOptions options;
  options.paths = {(folder.path / "job").string()};
  for (const std::string& name : healthy) options.healthy.push_back((folder.path / name).string());
  options.threads = 1;
  ReadProgress progress;
  auto done = diagnose(options, progress);
  BOOST_REQUIRE(done.has_value());
  return done->report;
}

std::string at(int second) {
  return fmt::format("2026-11-21 {:02}:{:02}:{:02},000 ", 10 + second / 3600, second / 60 % 60, second % 60);
}

// Eight ranks; rank 0 prints the steps, all write sometimes.
std::string steps(int ranks, int count, bool timed = true) {
  std::string text;
  for (int s = 0; s < count; ++s) {
    for (int r = 0; r < ranks; ++r)
      text +=
          fmt::format("[rank{}]: {}INFO fetched batch {} in {} ms\n", r, timed ? at(s * 2) : "", s, 3 + r);
    text += fmt::format("[rank0]: {}INFO step {}/1000 loss 2.{}\n", timed ? at(s * 2) : "", s, 100 + s);
  }
  return text;
}

std::string plain_lines_of(int rank, int second) {
  std::string text;
  for (const std::string_view line :
       {"evaluating on 512 samples", "table of metrics follows", "bleu 27.1 chrf 51.2",
        "copied weights to the ema model", "best so far, keeping it"})
    text += fmt::format("[rank{}]: {}INFO {}\n", rank, at(second++), line);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(plain_lines_of_a_single_rank_accuse_no_rank) {
  for (const int rank : {0, 3, 7}) {
    Folder folder;
    folder.write("job/train.log", steps(8, 60) + plain_lines_of(rank, 121));
    const Report report = report_of(folder);
    BOOST_TEST(report.diagnoses.empty(), "rank " << rank);
  }
}

BOOST_AUTO_TEST_CASE(a_stated_success_closes_the_case) {
  const std::string trouble = "[rank0]: " + at(140) +
                              "ERROR RuntimeError: CUDA error: out of memory\n[rank3]: " + at(141) +
                              "Traceback (most recent call last):\n[rank3]:   File \"a.py\", line 3, in "
                              "f\n[rank3]: ValueError: late\n";
  const struct {
    std::string_view line;
    bool closes;
  } kCases[] = {{"{\"key\": \"run_stop\", \"metadata\": {\"status\": \"success\"}}", true},
                {"job finished, exit code 0", true},
                {"Job 4711 completed successfully", true},
                {"training run ended: success", true},
                {"JobState=COMPLETED ExitCode=0:0", true},
                {"{\"key\": \"run_stop\", \"metadata\": {\"status\": \"aborted\"}}", false},
                {"job finished, exit code 137", false},
                {"snapshot upload status: success", false},
                {"worker 3 exited with code 0", false}};
  for (const auto& one : kCases) {
    Folder folder;
    folder.write("job/train.log", steps(8, 60) + fmt::format("[rank0]: {}{}\n", at(130), one.line) + trouble);
    BOOST_TEST(report_of(folder).diagnoses.empty() == one.closes, one.line);
  }
}

BOOST_AUTO_TEST_CASE(a_success_that_is_stated_before_the_last_step_closes_nothing) {
  Folder folder;
  folder.write("job/train.log", "[rank0]: " + at(0) + "Job 17 completed successfully\n" + steps(8, 60) +
                                    "[rank3]: " + at(140) +
                                    "ERROR RuntimeError: CUDA error: out of memory\n");
  BOOST_TEST(!report_of(folder).diagnoses.empty());
}

BOOST_AUTO_TEST_CASE(a_helper_step_that_failed_before_the_training_is_no_verdict) {
  Folder folder;
  folder.write("job/train.log", "run.sh: line 13: sudo: command not found\n" + steps(8, 60));
  BOOST_TEST(!report_of(folder).verdict);
}

BOOST_AUTO_TEST_CASE(fatal_lines_of_all_ranks_without_times_are_not_passed_over) {
  Folder folder;
  std::string end;
  for (int r = 0; r < 8; ++r)
    end += fmt::format(
        "[rank{}]: ERROR collective {} did not finish in 600 s\n[rank{}]: FATAL lost peer {}, exiting\n", r,
        40 + r, r, r ^ 1);
  folder.write("job/train.log", steps(8, 60, false) + end);
  const Report report = report_of(folder);
  BOOST_TEST(!report.indicating.empty());
  BOOST_TEST((!report.missing.empty() || !report.diagnoses.empty()));
}

BOOST_AUTO_TEST_CASE(a_line_of_level_fatal_after_the_last_step_is_no_good_end) {
  Folder folder;
  folder.write("job/train.log", steps(8, 60) + at(140) + "FATAL shard index has 4 entries, 5 are expected\n");
  const Report report = report_of(folder);
  BOOST_TEST((!report.missing.empty() || !report.diagnoses.empty()));
}

BOOST_AUTO_TEST_CASE(a_single_catch_all_line_is_never_stated_as_certain) {
  Folder folder;
  folder.write("job/train.log",
               "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n"
               "AttributeError: 'NoneType' object has no attribute 'shape'\n");
  const Report report = report_of(folder);
  BOOST_REQUIRE(!report.diagnoses.empty());
  BOOST_TEST(report.diagnoses[0].confidence < 0.75);
}

BOOST_AUTO_TEST_CASE(ranks_that_stop_while_their_launcher_writes_on_are_found_by_their_silence) {
  Folder folder;
  std::string text;
  for (int s = 0; s < 200; ++s)
    for (int r = 0; r < 8; ++r)
      if (s < 100 || (r != 4 && r != 5))
        text += fmt::format("[rank{}]: {}INFO fetched batch {}\n", r, at(s * 2), s);
  folder.write("job/job.toml", "[job]\nhosts = [\"a0\", \"a1\", \"a2\", \"a3\"]\nranks_per_host = 2\n");
  folder.write("job/train.log", text + "a2: " + at(401) + "agent: still waiting for its workers\n");
  const Report report = report_of(folder);
  BOOST_REQUIRE(!report.suspects.empty());
  BOOST_TEST(report.suspects[0].host.value_or("") == "a2");
}

BOOST_AUTO_TEST_CASE(lines_that_begin_with_a_slower_pace_are_listed_and_accuse_no_host) {
  for (const bool slower : {true, false}) {
    Folder folder;
    std::string text;
    int now = 0;
    for (int s = 0; s < 200; ++s) {
      now += slower && s >= 150 ? 6 : 3;
      for (int r = 0; r < 8; ++r)
        text += fmt::format("[rank{}]: {}INFO fetched batch {} in {} ms\n", r, at(now), s, 3 + r);
      if (s >= 150 && s % 2 == 0)
        text += fmt::format("[rank4]: {}DEBUG slow read from replica {}, buffer is reused\n", at(now),
                            "xbq"[s % 3]);
      text += fmt::format("[rank0]: {}INFO step {}/1000 loss 2.{}\n", at(now), s, 100 + s);
    }
    folder.write("job/job.toml", "[job]\nhosts = [\"a0\", \"a1\", \"a2\", \"a3\"]\nranks_per_host = 2\n");
    folder.write("job/train.log", text);
    const Report report = report_of(folder);
    BOOST_TEST(report.diagnoses.empty());
    BOOST_TEST(report.suspects.empty());
    BOOST_TEST(report.indicating.size() == (slower ? 3u : 0u));
    // Both logs end at step 199 of 1000.
    BOOST_TEST(report.missing.size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(an_alarm_that_the_job_outlived_is_no_indication) {
  const std::string alarm = "ERROR lease of shard 9 could not be renewed\n";
  const struct {
    std::string_view name;
    int step;  // -1: before the first time of the file
    bool listed;
  } kCases[] = {{"before the first time", -1, false}, {"in mid-job", 20, false}, {"at the end", 59, true}};
  for (const auto& one : kCases) {
    Folder folder;
    std::string text = one.step < 0 ? "[rank3]: " + alarm : "";
    for (int s = 0; s < 60; ++s) {
      for (int r = 0; r < 8; ++r)
        text += fmt::format("[rank{}]: {}INFO fetched batch {} in {} ms\n", r, at(s * 2), s, 3 + r);
      text += fmt::format("[rank0]: {}INFO step {}/1000 loss 2.{}\n", at(s * 2), s, 100 + s);
      if (s == one.step) text += "[rank3]: " + at(s * 2) + alarm;
    }
    folder.write("job/train.log", text + "[rank4]: " + at(120) + "RuntimeError: read of shard 7 failed\n");
    const Report report = report_of(folder);
    BOOST_TEST(!report.diagnoses.empty(), one.name);
    const auto is_alarm = [](const Indicating& x) { return x.sample.find("lease") != std::string::npos; };
    BOOST_TEST(std::ranges::any_of(report.indicating, is_alarm) == one.listed, one.name);
  }
}
