// Rounds of stacks of a job that is slow but goes on: who keeps the others waiting.
#include "core/detect/stacks/rounds.h"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <set>

#include "core/detect/stacks/stacks.h"
#include "ingest/stack_json.h"

using namespace culprit;
using namespace culprit::stacks;

BOOST_AUTO_TEST_SUITE(rounds)

namespace {

constexpr TimeNs kBegan = 1'790'000'000 * kNsPerSecond;
constexpr TimeNs kApart = 10 * kNsPerSecond;
constexpr uint32_t kRanks = 8;
constexpr const char* kWaits =
    R"("torch/distributed/distributed_c10d.py:all_reduce:2805","train.py:train_step:120")";

// What a rank does in a round.
using At = std::function<bool(uint32_t rank, uint32_t round)>;  // outside of the collective

std::string frames_of(bool outside, uint32_t round) {
  if (!outside) return kWaits;
  // It goes on: another line each time.
  return R"("tokenizer.py:encode:)" + std::to_string(10 + round) + R"(","train.py:train_step:88")";
}

struct Dumps {
  bool numbered = true;  // as culpritd's captures
  uint32_t ranks = kRanks, ranks_of_host = 2;
  Samples samples;

  void add(uint32_t rank, uint32_t round, bool outside) {
    const std::string number = numbered ? ",\"sample\":" + std::to_string(round + 4) : "";
    const std::string line =
        "{\"kind\":\"stack\",\"rank\":" + std::to_string(rank) + ",\"host\":\"node-" +
        std::to_string(rank / ranks_of_host) + "\",\"time_ns\":" + std::to_string(kBegan + round * kApart) +
        number + ",\"threads\":[{\"name\":\"MainThread\",\"frames\":[" + frames_of(outside, round) + "]}]}";
    for (StackDump& dump : ingest::parse_stack_json(line).dumps) {
      dump.file = "rank_" + std::to_string(rank) + "." + std::to_string(round) + ".json";
      samples.add(dump);
    }
  }
  SlowAnswer answer(uint32_t rounds, const At& outside) {
    for (uint32_t round = 0; round < rounds; ++round)
      for (uint32_t rank = 0; rank < ranks; ++rank) add(rank, round, outside(rank, round));
    const GroupLayout layout({});
    return analyse_rounds({samples, layout, {}, false});
  }
};

std::set<uint32_t> named(const SlowAnswer& answer) {
  std::set<uint32_t> out;
  if (answer.finding)
    for (const FindingSubject& s : answer.finding->subjects)
      if (s.rank) out.insert(*s.rank);
  return out;
}

bool steady(uint32_t rank, uint32_t) { return rank == 5; }
bool moving(uint32_t rank, uint32_t round) { return rank == (round * 3) % kRanks; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_rank_that_the_others_wait_for_in_each_round_is_named) {
  const SlowAnswer answer = Dumps().answer(5, steady);
  BOOST_TEST(named(answer) == (std::set<uint32_t>{5}), boost::test_tools::per_element());
  BOOST_REQUIRE(answer.finding);
  BOOST_TEST((answer.finding->symptom == Symptom::kSlowdown));
  BOOST_TEST(!answer.finding->fatal);
  BOOST_TEST(answer.finding->confidence > 0.6);
  BOOST_TEST(answer.finding->confidence <= kRoundsSure);
  BOOST_TEST(answer.finding->title.find("5 of 5 rounds") != std::string::npos, answer.finding->title);
  BOOST_TEST(answer.picture.rounds == 5u);
  BOOST_TEST(answer.picture.sample == 8u);
  BOOST_TEST(answer.picture.processes == kRanks);
  BOOST_REQUIRE(!answer.picture.why.empty());
  BOOST_TEST(answer.picture.why[0].find("over 40") != std::string::npos, answer.picture.why[0]);
}

BOOST_AUTO_TEST_CASE(a_rank_that_is_missing_from_one_round_is_named_still) {
  const SlowAnswer answer =
      Dumps().answer(5, [](uint32_t rank, uint32_t round) { return round == 2 ? rank == 1 : rank == 5; });
  BOOST_TEST(named(answer) == (std::set<uint32_t>{5}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(another_rank_in_each_round_is_nobody) {
  const SlowAnswer answer = Dumps().answer(5, moving);
  BOOST_TEST(!answer.finding);
  BOOST_REQUIRE(!answer.picture.why.empty());
  BOOST_TEST(answer.picture.why[0].find("no process was waited for") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_job_in_which_all_wait_or_all_compute_is_healthy) {
  BOOST_TEST(!Dumps().answer(5, [](uint32_t, uint32_t) { return false; }).finding);
  BOOST_TEST(!Dumps().answer(5, [](uint32_t, uint32_t round) { return round % 2 == 0; }).finding);
  BOOST_TEST(!Dumps().answer(5, [](uint32_t rank, uint32_t) { return rank % 2 == 0; }).finding);
}

BOOST_AUTO_TEST_CASE(few_rounds_prove_little) {
  BOOST_TEST(!Dumps().answer(1, steady).finding, "one round proves nothing");
  const SlowAnswer two = Dumps().answer(2, steady);
  BOOST_REQUIRE(two.finding);
  BOOST_TEST(two.finding->confidence < 0.5);
  const SlowAnswer three = Dumps().answer(3, steady);
  BOOST_REQUIRE(three.finding);
  BOOST_TEST(three.finding->confidence > 0.5);
}

BOOST_AUTO_TEST_CASE(of_two_ranks_chance_explains_a_few_rounds) {
  Dumps two;
  two.ranks = 2;
  BOOST_TEST(!two.answer(2, [](uint32_t rank, uint32_t) { return rank == 1; }).finding);
}

BOOST_AUTO_TEST_CASE(the_ranks_of_one_host_in_turn_accuse_the_host) {
  Dumps dumps;
  dumps.ranks = 32;
  dumps.ranks_of_host = 4;
  const SlowAnswer answer =
      dumps.answer(5, [](uint32_t rank, uint32_t round) { return rank == 12 + round % 4; });
  BOOST_REQUIRE(answer.finding);
  BOOST_REQUIRE(answer.finding->subjects.size() == 1u);
  BOOST_TEST(answer.finding->subjects[0].host.value_or("") == "node-3");
  BOOST_TEST(!answer.finding->subjects[0].rank);
}

BOOST_AUTO_TEST_CASE(several_dumps_of_each_rank_in_files_are_rounds) {
  Dumps files;
  files.numbered = false;
  const SlowAnswer answer = files.answer(5, steady);
  BOOST_TEST(named(answer) == (std::set<uint32_t>{5}), boost::test_tools::per_element());
  BOOST_TEST(answer.picture.rounds == 5u);
  Dumps mixed;
  mixed.numbered = false;
  BOOST_TEST(!mixed.answer(5, moving).finding);
}

BOOST_AUTO_TEST_CASE(a_rank_without_a_dump_in_some_rounds_shifts_no_capture) {
  Dumps dumps;
  const GroupLayout layout({});
  for (uint32_t round = 0; round < 5; ++round)
    for (uint32_t rank = 0; rank < kRanks; ++rank)
      if (rank != 2 || round > 1) dumps.add(rank, round, moving(rank, round));
  BOOST_TEST(!analyse_rounds({dumps.samples, layout, {}, false}).finding);
}

BOOST_AUTO_TEST_CASE(confidence_falls_with_chance) {
  BOOST_TEST(confidence_of_votes(5, 5, 1.0 / 8, 8) > confidence_of_votes(4, 5, 1.0 / 8, 8));
  BOOST_TEST(confidence_of_votes(4, 5, 1.0 / 8, 8) > confidence_of_votes(3, 5, 1.0 / 8, 8));
  BOOST_TEST(confidence_of_votes(5, 5, 1.0 / 8, 8) > confidence_of_votes(5, 5, 1.0 / 2, 2));
  BOOST_TEST(confidence_of_votes(1, 1, 1.0 / 1024, 1024) < 0.01, "somebody is last in any round");
  BOOST_TEST(confidence_of_votes(0, 5, 0.1, 8) == 0.0);
  BOOST_TEST(confidence_of_votes(6, 5, 0.1, 8) == 0.0);
}

BOOST_AUTO_TEST_SUITE_END()
