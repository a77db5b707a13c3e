#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "core/engine.h"

using namespace culprit;
using namespace culprit::core;

namespace {

StackDump conclusion(uint32_t rank, const std::string& file, const std::string& function) {
  StackDump dump;
  dump.rank = rank;
  dump.host = "node-" + std::to_string(rank / 4);
  dump.file = "stacks/rank_" + std::to_string(rank) + ".txt";
  dump.words = {"", "MainThread", file, function, "train.py", "train_step"};
  StackThread& thread = dump.threads.emplace_back();
  thread.name = 1;
  thread.main = true;
  thread.frames = {{3, 2, 7, false}, {5, 4, 120, false}};
  return dump;
}

// Eight ranks of two hosts; rank 6 is in the data loader.
std::vector<Input> one_in_the_loader(TimeNs at = kNoTime) {
  std::vector<Input> out;
  for (uint32_t r = 0; r < 8; ++r) {
    StackDump dump = r == 6 ? conclusion(r, "torch/utils/data/dataloader.py", "__next__")
                            : conclusion(r, "torch/distributed/distributed_c10d.py", "all_reduce");
    dump.time_ns = at;
    out.emplace_back(StackInput{std::move(dump)});
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stack_report)

BOOST_AUTO_TEST_CASE(one_look_at_a_job_proves_no_hang) {
  Engine engine({JobFile{}});
  std::vector<Input> inputs = one_in_the_loader(1'790'000'000 * kNsPerSecond);
  engine.step(inputs, kNoTime);
  const Report report = engine.report();
  BOOST_TEST((!report.verdict && !report.missing.empty()));
}

BOOST_AUTO_TEST_CASE(stacks_alone_name_the_rank_that_the_others_wait_for) {
  Engine engine({JobFile{}});
  for (const int64_t second : {1'790'000'000, 1'790'000'010}) {
    std::vector<Input> inputs = one_in_the_loader(second * kNsPerSecond);
    engine.step(inputs, kNoTime);
  }
  const Report report = engine.report();
  BOOST_REQUIRE(report.hang);
  BOOST_REQUIRE(report.hang->suspects.size() == 1u);
  BOOST_TEST((report.hang->suspects[0].rank == 6u && report.hang->suspects[0].host == "node-1"));
  BOOST_REQUIRE(report.verdict);
  BOOST_TEST(report.diagnoses[*report.verdict].detector.value_or("") == "stacks");
  BOOST_TEST((report.diagnoses[*report.verdict].symptom == Symptom::kHang));
  BOOST_TEST(report.job.ranks == 8u);
}

BOOST_AUTO_TEST_CASE(a_live_job_that_does_not_stand_still_is_not_judged_by_stacks) {
  EngineOptions options{JobFile{}};
  options.live = true;
  Engine engine(std::move(options));
  std::vector<Input> inputs = one_in_the_loader();
  const TimeNs now = 1'790'000'000 * kNsPerSecond;
  engine.step(inputs, now);
  const Report report = engine.report(now + kNsPerSecond);
  BOOST_TEST((!report.hang && report.diagnoses.empty()));
}

// Five captures, and in each the others wait for rank 6, which is somewhere else each time.
std::vector<Input> five_rounds() {
  std::vector<Input> out;
  for (uint32_t round = 0; round < 5; ++round)
    for (uint32_t r = 0; r < 8; ++r) {
      StackDump dump = r == 6 ? conclusion(r, "tokenizer.py", "encode_" + std::to_string(round))
                              : conclusion(r, "torch/distributed/distributed_c10d.py", "all_reduce");
      dump.time_ns = (1'790'000'000 + 10 * int64_t{round}) * kNsPerSecond;
      dump.sample = round + 1;
      out.emplace_back(StackInput{std::move(dump)});
    }
  return out;
}

BOOST_AUTO_TEST_CASE(rounds_of_a_job_in_files_name_the_rank_that_keeps_it_waiting) {
  Engine engine({JobFile{}});
  std::vector<Input> inputs = five_rounds();
  engine.step(inputs, kNoTime);
  const Report report = engine.report();
  BOOST_TEST(!report.hang);
  BOOST_REQUIRE(report.diagnoses.size() == 1u);
  BOOST_TEST((report.diagnoses[0].symptom == Symptom::kSlowdown));
  BOOST_TEST(report.diagnoses[0].title.find("Rank 6 keeps the others waiting") == 0u,
             report.diagnoses[0].title);
}

BOOST_AUTO_TEST_CASE(rounds_of_a_live_job_that_nothing_else_calls_slow_accuse_no_rank) {
  EngineOptions options{JobFile{}};
  options.live = true;
  Engine engine(std::move(options));
  std::vector<Input> inputs = five_rounds();
  const TimeNs now = 1'790'000'045 * kNsPerSecond;
  engine.step(inputs, now);
  const Report report = engine.report(now);
  BOOST_TEST(report.diagnoses.empty());
  BOOST_REQUIRE(report.stacks);
  BOOST_TEST(report.stacks->rounds == 5u);
  BOOST_TEST(report.stacks->sample == 5u);
  BOOST_TEST(report.stacks->processes == 8u);
  BOOST_REQUIRE(report.stacks->why.size() == 1u);
  BOOST_TEST(report.stacks->why[0].find("rank 6") == 0u, report.stacks->why[0]);
  BOOST_TEST(engine.last_capture() == 5u);
}

BOOST_AUTO_TEST_CASE(rounds_name_the_rank_of_a_live_job_that_something_else_calls_slow) {
  EngineOptions options{JobFile{}};
  options.live = true;
  Engine engine(std::move(options));
  std::vector<Input> inputs = five_rounds();
  const TimeNs now = 1'790'000'045 * kNsPerSecond;
  PluginFinding slow;
  slow.plugin = "pace_watch";
  slow.id = "pace.slow";
  slow.title = "Steps take twice as long";
  slow.category = "unknown";
  slow.component = "unknown";
  slow.action = "check";
  slow.symptom = "slowdown";
  slow.severity = PluginSeverity::kError;
  slow.confidence = 0.6;
  slow.time_ns = now;
  FindingInput& output = std::get<FindingInput>(inputs.emplace_back(FindingInput{}));
  output.finding = slow;
  engine.step(inputs, now);
  const Report report = engine.report(now);
  const auto is_slow = [](const Diagnosis& d) {
    return d.title.starts_with("Rank 6 keeps the others waiting");
  };
  BOOST_TEST(std::ranges::any_of(report.diagnoses, is_slow));
}

// A capture of a stop that ended, or of an earlier run with this name.
BOOST_AUTO_TEST_CASE(a_live_job_is_judged_by_stacks_since_its_last_progress_alone) {
  for (const bool fresh : {false, true}) {
    EngineOptions options{JobFile{}};
    options.live = true;
    options.hang = {10 * kNsPerSecond, 5};
    Engine engine(std::move(options));
    const TimeNs begin = 1'790'000'000 * kNsPerSecond;
    TimeNs now = begin;
    for (int64_t step = 0; step < 20; ++step) {
      std::vector<Input> beat = {detect::ProgressSeen{step, 0}};
      engine.step(beat, now += kNsPerSecond);
    }
    std::vector<Input> inputs = one_in_the_loader();
    for (Input& input : inputs)
      std::get<StackInput>(input).dump.time_ns = fresh ? now + 15 * kNsPerSecond : begin;
    engine.step(inputs, now + 15 * kNsPerSecond);
    const Report report = engine.report(now + 30 * kNsPerSecond);
    BOOST_REQUIRE(report.hang);
    BOOST_TEST(report.hang->suspects.size() == (fresh ? 1u : 0u));
    BOOST_TEST(report.hang->clusters.empty() == !fresh);
  }
}

BOOST_AUTO_TEST_SUITE_END()
