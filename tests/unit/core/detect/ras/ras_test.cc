#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "base/limits.h"
#include "core/detect/ras/follow.h"
#include "core/detect/ras/judge.h"
#include "core/detect/ras/observations.h"

using namespace culprit;
using namespace culprit::ras;

namespace {

constexpr TimeNs kStart = 1'763'690'000 * kNsPerSecond;
constexpr TimeNs kEvery = 10 * kNsPerSecond;

// A world of `ranks`, one process each, four on a host; all launched 100 AllReduce and 3 Broadcast.
RasAnswer world(uint32_t ranks) {
  RasAnswer a;
  a.json = true;
  a.functions = {"Broadcast", "AllReduce"};
  RasComm& comm = a.comms.emplace_back();
  comm.hash = 0xabc;
  comm.size = comm.reporting = ranks;
  for (uint32_t r = 0; r < ranks; ++r) {
    a.processes.push_back({fmt::format("10.0.0.{}", r / 4), 1000 + r});
    RasRank rank;
    rank.member = {r, r, r % 4, kRasUnknown};
    rank.counts = {3, 100};
    comm.ranks.push_back(rank);
  }
  a.comms_seen = 1;
  a.largest = ranks;
  a.largest_comms = 1;
  return a;
}

// Adds a communicator of these ranks of the world.
RasComm& add_comm(RasAnswer& a, uint64_t hash, const std::vector<uint32_t>& ranks) {
  RasComm& comm = a.comms.emplace_back();
  comm.hash = hash;
  comm.size = comm.reporting = static_cast<uint32_t>(ranks.size());
  for (uint32_t i = 0; i < ranks.size(); ++i) {
    RasRank rank;
    rank.member = {i, ranks[i], ranks[i] % 4, kRasUnknown};
    comm.ranks.push_back(rank);
  }
  ++a.comms_seen;
  return comm;
}

// The ranks left out of the world; they do not answer.
void remove(RasAnswer& a, uint32_t rank, bool dead) {
  RasComm& comm = a.comms[0];
  RasMissing missing;
  missing.member = comm.ranks[rank].member;
  missing.unresponsive = true;
  missing.dead = dead;
  comm.ranks.erase(comm.ranks.begin() + rank);
  comm.missing.push_back(missing);
  ++comm.missing_ranks;
  --comm.reporting;
  a.exited.push_back({missing.member.process, missing.member.device, kRasUnknown, dead});
  ++(dead ? a.dead_processes : a.exited_processes);
}

RasState follow(const std::vector<RasAnswer>& answers) {
  Follower follower;
  RasState state;
  TimeNs at = kStart;
  for (const RasAnswer& answer : answers) state = follower.add(answer, at += kEvery);
  return state;
}

std::vector<uint32_t> named(const RasVerdict& verdict) {
  std::vector<uint32_t> out;
  for (const Finding& f : verdict.findings)
    for (const FindingSubject& s : f.subjects)
      if (s.strength > 0 && !f.by_no_device) out.push_back(s.rank.value_or(kRasUnknown));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ras)

BOOST_AUTO_TEST_CASE(a_healthy_job_shows_nothing) {
  RasAnswer later = world(8);
  for (RasRank& rank : later.comms[0].ranks) ++rank.counts[1];
  const RasState state = follow({world(8), later});
  BOOST_TEST(state.comms.empty());
  BOOST_TEST(state.still == 1u);
  const RasVerdict verdict = judge(state, {});
  BOOST_TEST(verdict.findings.empty());
  BOOST_TEST(verdict.missing.empty());
}

BOOST_AUTO_TEST_CASE(an_answer_saved_twice_is_one) {
  RasAnswer a = world(8);
  a.comms[0].ranks[3].counts = {3, 99};
  Follower follower;
  follower.add(a, kStart);
  const RasState copy = follower.add(a, kStart + kNsPerSecond);
  BOOST_TEST((copy.comms.at(0).answers == 1u && copy.still == 1u));
  const RasState later = follower.add(a, kStart + kEvery);
  BOOST_TEST((later.comms.at(0).answers == 2u && later.still == 2u));
}

BOOST_AUTO_TEST_CASE(a_rank_that_finalises_before_the_others_proves_nothing) {
  const auto confidence = [](RasPhase phase) {
    RasAnswer a = world(8);
    for (RasRank& rank : a.comms[0].ranks) rank.phase = RasPhase::kRunning;
    a.comms[0].ranks[0].phase = phase;
    RasContext once;
    once.once = true;
    const RasVerdict output = judge(follow({a, a}), once);
    return output.findings.empty() ? 0.0 : output.findings[0].confidence;
  };
  BOOST_TEST(confidence(RasPhase::kFinalize) < 0.5);
  BOOST_TEST(confidence(RasPhase::kAbort) > 0.5);
}

BOOST_AUTO_TEST_CASE(a_rank_behind_that_stands_still_is_named_with_its_host) {
  RasAnswer a = world(8);
  a.comms[0].ranks[5].counts[1] = 99;
  RasContext context;
  context.host = [](const std::string& address) { return std::optional("node-" + address.substr(7)); };
  const RasVerdict verdict = judge(follow({a, a}), context);
  BOOST_REQUIRE(verdict.findings.size() == 1u);
  const Finding& f = verdict.findings[0];
  BOOST_TEST(f.title == "Rank 5 (process 1005 on node-1) never joined AllReduce #100; 7 ranks wait");
  BOOST_REQUIRE(f.subjects.size() == 1u);
  BOOST_TEST(f.subjects[0].host.value() == "node-1");
  BOOST_TEST(f.subjects[0].rank.value() == 5u);
  BOOST_TEST(f.subjects[0].device.value() == 1u);
  BOOST_TEST(f.confidence > 0.5);
  BOOST_TEST(f.first_ns == kStart + kEvery);
}

BOOST_AUTO_TEST_CASE(ranks_of_several_hosts_that_are_behind_together_are_not_named) {
  for (const uint32_t other : {6u, 9u}) {  // on the host of rank 5, and on another
    RasAnswer a = world(16);
    for (const uint32_t rank : {5u, other}) a.comms[0].ranks[rank].counts[1] = 99;
    const RasVerdict verdict = judge(follow({a, a}), {});
    BOOST_REQUIRE(verdict.findings.size() == 1u);
    const bool one_host = other == 6;
    BOOST_TEST((verdict.answers[0] == (one_host ? HangAnswer::kMissing : HangAnswer::kUnknown)));
    BOOST_TEST(verdict.findings[0].by_no_device == !one_host);
  }
}

BOOST_AUTO_TEST_CASE(one_answer_alone_is_not_conclusive) {
  RasAnswer a = world(8);
  a.comms[0].ranks[5].counts[1] = 99;
  const RasVerdict verdict = judge(follow({a}), {});
  BOOST_REQUIRE(verdict.findings.size() == 1u);
  BOOST_TEST(verdict.findings[0].confidence < 0.5);
  RasContext live;
  live.once = false;
  BOOST_TEST(judge(follow({a}), live).findings.empty());
  BOOST_TEST(judge(follow({a, a}), live).findings.size() == 1u);
}

BOOST_AUTO_TEST_CASE(counts_that_differ_and_move_do_not_stand) {
  RasAnswer a = world(8), b = world(8);
  a.comms[0].ranks[5].counts[1] = 99;
  for (RasRank& rank : b.comms[0].ranks) ++rank.counts[1];
  b.comms[0].ranks[5].counts[1] = 100;
  const RasState state = follow({a, b});
  BOOST_REQUIRE(state.comms.size() == 1u);
  BOOST_TEST(state.comms[0].answers == 1u);
}

BOOST_AUTO_TEST_CASE(a_communicator_does_not_stand_while_its_members_move_in_another) {
  const auto answer = [](uint64_t moves) {
    RasAnswer a = world(8);
    RasComm& pair = add_comm(a, 0xdef, {0, 1});
    pair.ranks[0].counts = {0, 7};
    pair.ranks[1].counts = {0, 6};
    for (RasRank& rank : a.comms[0].ranks) rank.counts[1] += moves;
    return a;
  };
  const RasState state = follow({answer(0), answer(1)});
  BOOST_REQUIRE(state.comms.size() == 1u);
  BOOST_TEST(state.comms[0].answers == 1u);
}

BOOST_AUTO_TEST_CASE(a_rank_that_waits_in_another_communicator_is_a_victim) {
  // 0 and 1 make a pair; 1 never came to it, so 0 did not come to the world's operation either.
  RasAnswer a = world(8);
  a.comms[0].ranks[0].counts[1] = a.comms[0].ranks[1].counts[1] = 99;
  RasComm& pair = add_comm(a, 0xdef, {0, 1});
  pair.ranks[0].counts = {0, 7};
  pair.ranks[1].counts = {0, 6};
  BOOST_TEST((named(judge(follow({a, a}), {})) == std::vector<uint32_t>{1}));
}

BOOST_AUTO_TEST_CASE(a_minority_ahead_accuses_nobody) {
  RasAnswer a = world(8);
  a.comms[0].ranks[2].counts[1] = 101;
  const RasVerdict verdict = judge(follow({a, a}), {});
  BOOST_REQUIRE(verdict.findings.size() == 1u);
  BOOST_TEST(named(verdict).empty());
  BOOST_TEST(verdict.findings[0].by_no_device);
  BOOST_TEST(verdict.findings[0].title ==
             "Rank 2 (process 1002 on 10.0.0.0) launched an operation that 7 ranks did not");
}

BOOST_AUTO_TEST_CASE(ranks_in_another_function_than_their_peers_are_a_fault_of_the_program) {
  RasAnswer a = world(8);
  for (RasRank& rank : a.comms[0].ranks) ++(rank.member.rank == 3 ? rank.counts[0] : rank.counts[1]);
  const RasVerdict verdict = judge(follow({a, a}), {});
  BOOST_REQUIRE(verdict.findings.size() == 1u);
  const Finding& f = verdict.findings[0];
  BOOST_TEST(f.title ==
             "Rank 3 (process 1003 on 10.0.0.0) called Broadcast where the peers called AllReduce");
  BOOST_TEST((f.category == Category::kUser));
  BOOST_TEST(f.by_no_device);
}

BOOST_AUTO_TEST_CASE(a_reason_names_its_source_once) {
  RasAnswer a = world(8);
  a.comms[0].ranks[5].counts = {4, 99};
  const RasVerdict verdict = judge(follow({a, a}), {});
  BOOST_REQUIRE(!verdict.findings.empty());
  const std::string& why = verdict.findings[0].why[0];
  BOOST_TEST((why.starts_with("NCCL RAS: ") && why.find("NCCL RAS", 1) == std::string::npos));
}

BOOST_AUTO_TEST_CASE(a_dead_process_left_and_its_peers_are_no_suspects) {
  RasAnswer a = world(8);
  remove(a, 6, true);
  for (RasRank& rank : a.comms[0].ranks) rank.counts[1] += rank.member.rank < 6;
  const RasVerdict verdict = judge(follow({a, a}), {});
  BOOST_REQUIRE(verdict.findings.size() >= 1u);
  BOOST_TEST(verdict.findings[0].title == "Rank 6 (process 1006 on 10.0.0.1) left the job");
  BOOST_TEST(named(verdict)[0] == 6u);
  BOOST_TEST(verdict.findings[0].confidence > 0.8);
}

BOOST_AUTO_TEST_CASE(a_process_without_an_answer_counts_after_the_second_time) {
  RasAnswer a = world(8);
  remove(a, 6, false);
  const RasVerdict once = judge(follow({a}), {}), twice = judge(follow({a, a}), {});
  BOOST_REQUIRE(once.findings.size() == 1u);
  BOOST_TEST(once.findings[0].confidence < 0.5);
  BOOST_REQUIRE(twice.findings.size() == 1u);
  BOOST_TEST(twice.findings[0].confidence > 0.5);
  BOOST_TEST((named(twice) == std::vector<uint32_t>{6}));
}

BOOST_AUTO_TEST_CASE(many_processes_without_an_answer_accuse_none) {
  RasAnswer a = world(8);
  for (int i = 0; i < 4; ++i) remove(a, 4, false);
  const RasVerdict verdict = judge(follow({a, a}), {});
  BOOST_REQUIRE(!verdict.findings.empty());
  BOOST_TEST(named(verdict).empty());
  BOOST_TEST(verdict.findings[0].confidence < 0.5);
}

BOOST_AUTO_TEST_CASE(ranks_that_make_a_communicator_wait_for_the_one_that_did_not_come) {
  RasAnswer a = world(8);
  RasComm& comm = add_comm(a, 0xdef, {0, 1, 2});
  comm.size = 4;
  for (RasRank& rank : comm.ranks) rank.phase = RasPhase::kInit;
  RasMissing missing;
  missing.member = {3, 3, 3, kRasUnknown};
  comm.missing.push_back(missing);
  comm.missing_ranks = 1;
  const RasVerdict verdict = judge(follow({a, a}), {});
  BOOST_REQUIRE(verdict.findings.size() == 1u);
  BOOST_TEST(verdict.findings[0].title ==
             "Rank 3 (process 1003 on 10.0.0.0) did not join a communicator that 3 ranks make");
  BOOST_TEST((named(verdict) == std::vector<uint32_t>{3}));
}

BOOST_AUTO_TEST_CASE(a_rank_that_finalised_while_others_run_is_no_device) {
  RasAnswer a = world(8);
  a.comms[0].ranks[7].phase = RasPhase::kFinalize;
  const RasVerdict verdict = judge(follow({a, a}), {});
  BOOST_REQUIRE(verdict.findings.size() == 1u);
  BOOST_TEST(verdict.findings[0].by_no_device);
  BOOST_TEST((verdict.findings[0].category == Category::kUser));
}

BOOST_AUTO_TEST_CASE(equal_counts_that_stand_still_are_no_finding_but_an_open_question) {
  const RasState state = follow({world(8), world(8), world(8)});
  BOOST_TEST(state.still == 3u);
  const RasVerdict verdict = judge(state, {});
  BOOST_TEST(verdict.findings.empty());
  BOOST_REQUIRE(verdict.missing.size() == 1u);
  BOOST_TEST((verdict.missing[0].find("sees neither send, recv and all-to-all") != std::string::npos));
}

BOOST_AUTO_TEST_CASE(without_a_complete_largest_communicator_no_global_rank_is_claimed) {
  RasAnswer a = world(8);
  a.comms[0].size = a.largest = 16;  // eight of its ranks are not in the answer
  a.comms[0].ranks[5].counts[1] = 99;
  const RasVerdict verdict = judge(follow({a, a}), {});
  BOOST_REQUIRE(verdict.findings.size() == 1u);
  BOOST_REQUIRE(verdict.findings[0].subjects.size() == 1u);
  BOOST_TEST(!verdict.findings[0].subjects[0].rank);
  BOOST_TEST(verdict.findings[0].subjects[0].host.value() == "10.0.0.1");
}

BOOST_AUTO_TEST_CASE(communicators_that_number_the_same_ranks_otherwise_give_no_global_ranks) {
  RasAnswer a = world(4);
  add_comm(a, 0xdef, {3, 2, 1, 0});
  a.largest_comms = 2;
  a.comms[0].ranks[1].counts[1] = 99;
  const RasVerdict verdict = judge(follow({a, a}), {});
  BOOST_REQUIRE(verdict.findings.size() == 1u);
  BOOST_TEST(!verdict.findings[0].subjects[0].rank);
}

BOOST_AUTO_TEST_CASE(a_communicator_with_a_fault_names_all_of_its_members_by_global_ranks) {
  RasAnswer a = world(8);
  add_comm(a, 0xdef, {6, 4, 2}).ranks[0].counts[1] = 1;
  const RasState state = follow({a});
  BOOST_REQUIRE(state.comms.size() == 1u);
  BOOST_TEST((state.comms[0].members == RankList{2, 4, 6}));
}

BOOST_AUTO_TEST_CASE(observations_show_who_waits_in_which_operation_and_who_did_not_come) {
  RasAnswer a = world(8);
  a.comms[0].ranks[5].counts[1] = 99;
  BOOST_TEST(observations_of(follow({a}), {}).observations.empty());  // nothing stands yet
  const RasObservations all = observations_of(follow({a, a}), {});
  BOOST_REQUIRE(all.observations.size() == 8u);
  for (const hang::Observation& s : all.observations) {
    BOOST_TEST(s.counted == "AllReduce");
    BOOST_TEST(s.group.size == 8u);
    BOOST_TEST(s.call.has_value() == (s.rank.value() != 5u));
    BOOST_TEST(s.enqueued.value() == (s.rank.value() == 5u ? 99 : 100));
  }
  BOOST_TEST(all.exits.empty());
}

BOOST_AUTO_TEST_CASE(processes_without_an_answer_are_exits) {
  RasAnswer a = world(8);
  remove(a, 6, true);
  remove(a, 2, false);
  const RasObservations all = observations_of(follow({a}), {});
  BOOST_REQUIRE(all.exits.size() == 2u);
  BOOST_TEST((all.exits[0].kind == hang::ExitKind::kExited));
  BOOST_TEST(all.exits[0].rank.value() == 6u);
  BOOST_TEST((all.exits[1].kind == hang::ExitKind::kUnresponsive));
  BOOST_TEST(all.exits[1].host.value() == "10.0.0.0");
}

BOOST_AUTO_TEST_CASE(the_word_of_a_user_is_told_as_such) {
  RasAnswer a = world(8);
  a.comms[0].ranks[5].counts[1] = 99;
  RasState state = follow({a, a});
  state.user = 12'003;
  const RasVerdict verdict = judge(state, {});
  BOOST_REQUIRE(verdict.findings.size() == 1u);
  BOOST_TEST((verdict.findings[0].said_by.uids == std::vector<Principal>{12'003}));
}

BOOST_AUTO_TEST_CASE(a_state_keeps_limited_lists_and_counts_the_rest) {
  RasAnswer a = world(8);
  for (uint32_t i = 0; i < 100; ++i) {
    RasComm& comm = add_comm(a, i, {0, 1, 2});
    comm.ranks[0].counts[0] = 1;
  }
  const RasState state = follow({a});
  BOOST_TEST(state.comms.size() == limits::kRasCommsMax);
  BOOST_TEST(state.dropped == 100 - limits::kRasCommsMax);
}

BOOST_AUTO_TEST_SUITE_END()
