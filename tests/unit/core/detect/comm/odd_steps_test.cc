// Suspects of single steps: listed, and not accused.
#include "core/detect/comm/odd_steps.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "../../../../sim/plain_job.h"
#include "core/detect/comm/findings.h"
#include "core/detect/comm/judge.h"
#include "step_results.h"

namespace culprit {
namespace {

using Ranks = std::vector<uint32_t>;

comm::Judgement judge_as_is(const StepResults& results) {
  comm::Judgement out = comm::judge(results.cluster, results.steps);
  BOOST_TEST(out.culprits.empty());
  return out;
}

// A job of 64 ranks on 8 hosts.
comm::TraceFindings findings_of(const plain::Faults& faults, uint32_t steps = 20) {
  static const JobFile job;
  comm::CommTrace trace(&job, false);
  plain::Job plain({4, 4, 4, 8, 2, 8}, {}, faults);
  for (uint32_t s = 0; s < steps; ++s) {
    const auto records = plain.step();
    for (uint32_t h = 0; h < plain.hosts(); ++h) trace.add_records("node-" + std::to_string(h), records[h]);
  }
  return comm::report_findings(trace);
}

bool spike(uint32_t step) { return step == 7 || step == 15; }

std::vector<Irregularity> with_suspects(const comm::TraceFindings& of) {
  std::vector<Irregularity> out;
  std::ranges::copy_if(of.irregularities, std::back_inserter(out),
                       [](const Irregularity& x) { return !x.suspects.empty(); });
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(odd_steps)

BOOST_FIXTURE_TEST_CASE(a_rank_that_is_slow_in_two_steps_is_listed_and_not_accused, StepResults) {
  for (const uint32_t s : {20u, 71u}) slow_work(5, s, 60);
  const comm::Judgement judged = judge_as_is(*this);
  BOOST_REQUIRE(judged.listed.size() == 1u);
  const comm::Culprit& c = judged.listed[0];
  BOOST_TEST((c.ranks == Ranks{5}));
  BOOST_TEST((c.steps == Ranks{20, 71}));
  BOOST_TEST((c.kind == SlowPart::kGpu));
  BOOST_TEST(c.confidence > 0.1);
  BOOST_TEST(c.confidence < 0.5);  // below any verdict
  BOOST_TEST((judged.odd == Ranks{20, 71}));
}

BOOST_FIXTURE_TEST_CASE(a_single_pause_is_listed_if_it_is_longer_than_a_garbage_collection, StepResults) {
  slow(5, 20, 250);
  BOOST_TEST(judge_as_is(*this).listed.empty());
  StepResults longer;
  longer.slow(5, 20, 350);
  const comm::Judgement judged = judge_as_is(longer);
  BOOST_REQUIRE(judged.listed.size() == 1u);
  BOOST_TEST((judged.listed[0].ranks == Ranks{5}));
  BOOST_TEST(judged.listed[0].stalls);
}

BOOST_FIXTURE_TEST_CASE(short_pauses_of_one_rank_alone_are_listed, StepResults) {
  for (const uint32_t s : {20u, 50u, 71u}) slow(5, s, 150);
  BOOST_TEST(judge_as_is(*this).listed.size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_pause_that_moves_from_rank_to_rank_lists_none, StepResults) {
  slow(5, 20, 600);
  slow(9, 40, 500);
  slow(2, 71, 700);
  const comm::Judgement judged = judge_as_is(*this);
  BOOST_TEST(judged.listed.empty());
  BOOST_TEST(judged.odd.size() == 3u);
}

BOOST_FIXTURE_TEST_CASE(two_ranks_that_are_late_together_are_not_listed, StepResults) {
  slow_work(5, 20, 60);
  steps[20].ranks[9] = steps[20].ranks[5];
  steps[20].ranks[9].rank = 9;
  BOOST_TEST(judge_as_is(*this).listed.empty());
}

BOOST_FIXTURE_TEST_CASE(a_pause_of_all_ranks_lists_none, StepResults) {
  for (uint32_t r = 0; r < kRanks; ++r) steps[20].ranks[r].self += 600;
  steps[20].step_ms += 600;
  BOOST_TEST(judge_as_is(*this).listed.empty());
}

BOOST_FIXTURE_TEST_CASE(what_rank_0_saves_lists_none, StepResults) {
  for (const uint32_t s : {19u, 59u}) slow(0, s, 600);
  BOOST_TEST(judge_as_is(*this).listed.empty());
}

BOOST_FIXTURE_TEST_CASE(a_step_that_the_excess_does_not_explain_lists_none, StepResults) {
  for (const uint32_t s : {20u, 71u}) slow_work(5, s, 60), steps[s].step_ms += 200;
  const comm::Judgement judged = judge_as_is(*this);
  BOOST_TEST(judged.listed.empty());
  BOOST_TEST(judged.odd.size() == 2u);
}

BOOST_FIXTURE_TEST_CASE(hosts_with_slow_networks_at_once_are_listed_as_a_switch, StepResults) {
  for (const uint32_t s : {20u, 71u}) {
    steps[s].step_ms += 60;
    for (const uint32_t host : {2u, 3u})
      steps[s].network.push_back({comm::NetKind::kHost, host, 0, 4, host == 2 ? 60. : 0., 0.9f});
  }
  const comm::Judgement judged = judge_as_is(*this);
  BOOST_REQUIRE(judged.listed.size() == 1u);
  BOOST_TEST((judged.listed[0].kind == SlowPart::kSwitch));
  BOOST_TEST((judged.listed[0].hosts == Ranks{2, 3}));
}

BOOST_FIXTURE_TEST_CASE(a_score_adds_up_over_steps_and_decays, StepResults) {
  const auto score = [](std::initializer_list<uint32_t> at) {
    StepResults results;
    for (const uint32_t s : at) results.slow_work(5, s, 60);
    const comm::Judgement judged = judge_as_is(results);
    BOOST_REQUIRE(judged.listed.size() == 1u);
    return judged.listed[0].confidence;
  };
  BOOST_TEST(score({20, 30, 40}) > score({20, 30}));
  BOOST_TEST(score({20, 30}) > score({20, 90}));
}

BOOST_AUTO_TEST_CASE(the_sentence_says_who_and_how_often) {
  plain::Faults rank, host;
  rank.work = [](uint32_t r, uint32_t s) { return r == 21 && spike(s) ? 1.6 : 1.0; };
  host.work = [](uint32_t r, uint32_t s) { return r / 8 == 2 && spike(s) ? 1.6 : 1.0; };
  for (const auto& [faults, sentence] :
       {std::pair(rank, "rank 21 (node-2, GPU 5) alone, twice in 20 steps: watch it"),
        std::pair(host, "each rank of node-2 alone, twice in 20 steps: watch it")}) {
    const comm::TraceFindings found = findings_of(faults);
    BOOST_TEST(found.findings.empty());
    const auto listed = with_suspects(found);
    BOOST_REQUIRE(listed.size() == 2u);
    for (const Irregularity& x : listed) {
      BOOST_TEST(spike(static_cast<uint32_t>(x.first_step)));
      BOOST_TEST(x.sentence == sentence);
      BOOST_TEST(x.suspects[0].why.at(0) == sentence);
      BOOST_TEST(x.suspects[0].host.value() == "node-2");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_network_part_that_is_slow_in_two_steps_is_listed_and_not_accused) {
  plain::Faults faults;
  faults.transfer = [](const Ranks& ranks, uint32_t s) {
    const auto on = [&](uint32_t h) {
      return std::ranges::any_of(ranks, [h](uint32_t r) { return r / 8 == h; });
    };
    return ranks.size() < 60 && spike(s) && on(2) && on(4) ? 30.0 : 1.0;
  };
  const comm::TraceFindings found = findings_of(faults);
  BOOST_TEST(found.findings.empty());
  const auto listed = with_suspects(found);
  BOOST_REQUIRE(listed.size() == 2u);
  BOOST_TEST((listed[0].kind == SlowPart::kLink));
  BOOST_REQUIRE(listed[0].links.size() == 1u);
  BOOST_TEST(listed[0].links[0].a == "node-2");
  BOOST_TEST(listed[0].links[0].b == "node-4");
  BOOST_TEST(listed[0].sentence == "the way between node-2 and node-4 alone, twice in 20 steps: watch it");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit
