// The one answer that follows from who entered what.
#include "core/detect/hang/judge.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::hang;

BOOST_AUTO_TEST_SUITE(hang_state)

namespace {

using Ranks = std::vector<uint32_t>;

Observation waiting(uint32_t rank, int64_t seq, const char* op = "ALLREDUCE", uint64_t elements = 100) {
  Observation s;
  s.rank = rank;
  s.group = {"0", "default_pg", {}, 0};
  s.call = ObservedCall{op, seq, elements, elements, {}, {}, true};
  s.at_ns = 1000 * kNsPerSecond;
  s.waited_ns = 600 * kNsPerSecond;
  s.evidence.text = "line";
  return s;
}

// A rank that says its numbers, and waits in nothing.
Observation at(uint32_t rank, int64_t enqueued) {
  Observation s = waiting(rank, -1);
  s.call.reset();
  s.enqueued = s.completed = enqueued;
  return s;
}

HangInput of(std::vector<Observation> observations, uint32_t world = 0) {
  HangInput in;
  in.observations = std::move(observations);
  in.world = world;
  in.iterated = true;
  return in;
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_observation_is_no_answer) {
  const HangJudgement a = answer({});
  BOOST_TEST((a.hang.answer == HangAnswer::kUnknown && a.title.empty() && a.missing.empty()));
}

BOOST_AUTO_TEST_CASE(a_minority_in_another_operation_is_the_mismatch) {
  const HangJudgement a = answer(of({waiting(1, 7), waiting(0, 7, "BROADCAST"), waiting(5, 7)}));
  BOOST_TEST((a.hang.answer == HangAnswer::kMismatch && a.certain));
  BOOST_TEST((a.hang.waited_for == Ranks{0} && a.hang.waiting == Ranks{1, 5}));
  BOOST_TEST(a.hang.seq == 7);
}

BOOST_AUTO_TEST_CASE(a_minority_of_another_size_is_the_mismatch) {
  const HangJudgement a = answer(of({waiting(1, 7), waiting(2, 7, "ALLREDUCE", 64), waiting(5, 7)}));
  BOOST_TEST((a.hang.answer == HangAnswer::kMismatch && a.hang.waited_for == Ranks{2}));
}

BOOST_AUTO_TEST_CASE(sizes_may_differ_where_the_operation_allows_it) {
  for (const char* op : {"ALLTOALL_BASE", "alltoallv", "COALESCED", "GATHER", "SCATTER"}) {
    const HangJudgement a = answer(of({waiting(1, 7, op, 10), waiting(2, 7, op, 20)}));
    BOOST_TEST((a.hang.answer == HangAnswer::kUnknown), op);
  }
}

BOOST_AUTO_TEST_CASE(a_size_that_was_not_read_differs_from_nothing) {
  Observation cut = waiting(2, 7);
  cut.call->in.reset(), cut.call->out.reset();
  BOOST_TEST((answer(of({waiting(1, 7), cut})).hang.answer == HangAnswer::kUnknown));
}

BOOST_AUTO_TEST_CASE(a_rank_whose_own_numbers_are_behind_never_joined) {
  const HangJudgement a = answer(of({waiting(0, 13), waiting(1, 13), at(11, 12)}), [](uint32_t rank) {
    return "Rank " + std::to_string(rank) + " (node-7, GPU 3)";
  });
  BOOST_TEST((a.hang.answer == HangAnswer::kMissing && a.by_host_code));
  BOOST_TEST((a.hang.waited_for == Ranks{11} && a.hang.waiting == Ranks{0, 1}));
  BOOST_TEST(
      a.hang.sentence ==
      "Rank 11 (node-7, GPU 3) never joined ALLREDUCE #13 of group default_pg; 2 ranks wait since 00:06:40 "
      "UTC");
}

BOOST_AUTO_TEST_CASE(equal_numbers_of_the_default_group_say_nothing_of_another_group) {
  const HangJudgement a = answer(of({at(0, 233'659), at(1, 233'659)}));
  BOOST_TEST((a.hang.answer == HangAnswer::kUnknown && !a.missing.empty()));
}

BOOST_AUTO_TEST_CASE(numbers_of_unknown_groups_are_not_compared) {
  Observation a = waiting(0, 7), b = waiting(1, 9, "BROADCAST");
  a.group = b.group = {};
  BOOST_TEST((answer(of({a, b})).hang.answer == HangAnswer::kUnknown));
  b.call->seq = 7;
  BOOST_TEST((answer(of({a, b})).hang.answer == HangAnswer::kMismatch));
}

BOOST_AUTO_TEST_CASE(sizes_of_an_unnamed_group_differ_only_from_what_most_ranks_have) {
  std::vector<Observation> observations = {waiting(0, 7, "ALLREDUCE", 10), waiting(1, 7, "ALLREDUCE", 20),
                                           waiting(2, 7, "ALLREDUCE", 30)};
  BOOST_TEST((answer(of(observations)).hang.answer == HangAnswer::kMismatch));
  for (Observation& observation : observations) observation.group = {};
  BOOST_TEST((answer(of(observations)).hang.answer == HangAnswer::kUnknown));
  observations[2].call->in = observations[2].call->out = 10;
  BOOST_TEST((answer(of(observations)).hang.answer == HangAnswer::kMismatch));
}

BOOST_AUTO_TEST_CASE(of_unnamed_groups_one_rank_with_the_data_of_most_called_another_operation) {
  for (const uint64_t elements : {uint64_t{4096}, uint64_t{512}}) {
    std::vector<Observation> observations;
    for (uint32_t rank = 0; rank < 10; ++rank)
      observations.push_back(waiting(rank, 70, "REDUCE_SCATTER", 4096));
    observations[3] = waiting(3, 70, "ALLREDUCE", elements);
    observations.push_back(waiting(20, 9));  // in another group
    for (Observation& observation : observations) observation.group = {};
    const HangJudgement a = answer(of(observations));
    BOOST_TEST((a.hang.answer == (elements == 4096 ? HangAnswer::kMismatch : HangAnswer::kUnknown)));
    if (elements == 4096) BOOST_TEST((a.hang.waited_for == Ranks{3}));
  }
}

BOOST_AUTO_TEST_CASE(groups_of_equal_numbers_stay_apart) {
  Observation a = waiting(0, 7), b = waiting(1, 7, "BROADCAST");
  a.group = {"4", "dp", {}, 0}, b.group = {"5", "tp", {}, 0};
  BOOST_TEST((answer(of({a, b})).hang.answer == HangAnswer::kUnknown));
}

BOOST_AUTO_TEST_CASE(ranks_of_a_group_at_distant_numbers_ran_apart) {
  const HangJudgement a = answer(of({waiting(0, 7), waiting(1, 9, "BROADCAST")}));
  BOOST_TEST((a.hang.answer == HangAnswer::kMismatch && !a.certain));
}

BOOST_AUTO_TEST_CASE(ranks_one_operation_behind_are_a_mismatch_only_if_they_have_not_enqueued_the_next) {
  struct Case {
    const char* what;
    std::optional<int64_t> enqueued;  // by the ranks that are behind
    int64_t ahead;
    HangAnswer answer;
    Ranks named;
  };
  const Case kCases[] = {
      {"enqueued", 9, 8, HangAnswer::kUnfinished, {2, 3}},
      {"not known", {}, 8, HangAnswer::kUnfinished, {2, 3}},
      {"not enqueued", 7, 8, HangAnswer::kMismatch, {2, 3}},
      {"two ahead", 12, 9, HangAnswer::kMismatch, {2, 3}},
  };
  for (const Case& c : kCases) {
    std::vector<Observation> observations;
    for (const uint32_t rank : {0u, 1u, 2u, 3u}) {
      observations.push_back(waiting(rank, rank < 2 ? c.ahead : 7));
      if (rank >= 2) observations.back().enqueued = c.enqueued;
    }
    const HangJudgement a = answer(of(observations));
    BOOST_TEST((a.hang.answer == c.answer), c.what);
    BOOST_TEST((a.hang.waited_for == c.named), c.what);
  }
}

BOOST_AUTO_TEST_CASE(most_ranks_behind_few_are_not_at_fault_together) {
  const HangJudgement a =
      answer(of({waiting(0, 8), waiting(1, 7), waiting(2, 7), waiting(3, 7), waiting(4, 7)}));
  BOOST_TEST((a.hang.answer == HangAnswer::kUnfinished && a.hang.waited_for.empty()));
}

BOOST_AUTO_TEST_CASE(all_members_in_one_operation_are_device_or_network) {
  std::vector<Observation> all;
  for (uint32_t rank = 0; rank < 4; ++rank) all.push_back(waiting(rank, 70));
  BOOST_TEST((answer(of(all, 4)).hang.answer == HangAnswer::kUnfinished));
  // The size of the group is unknown.
  BOOST_TEST((answer(of(all)).hang.answer == HangAnswer::kUnknown));
}

BOOST_AUTO_TEST_CASE(the_one_that_says_nothing_is_missing_and_nothing_accuses_its_hardware) {
  const HangJudgement a = answer(of({waiting(0, 70), waiting(1, 70), waiting(3, 70)}, 4));
  BOOST_TEST((a.hang.answer == HangAnswer::kMissing && !a.by_host_code && !a.certain));
  BOOST_TEST((a.hang.waited_for == Ranks{2} && !a.missing.empty()));
}

BOOST_AUTO_TEST_CASE(half_of_the_ranks_without_a_word_are_unknown) {
  BOOST_TEST((answer(of({waiting(0, 70), waiting(1, 70)}, 4)).hang.answer == HangAnswer::kUnknown));
}

BOOST_AUTO_TEST_CASE(an_early_barrier_waits_for_a_rank_that_prepares) {
  HangInput in = of({waiting(1, 5, "ALLREDUCE", 1)});
  BOOST_TEST((answer(in).hang.answer == HangAnswer::kUnknown));  // in the middle of the training
  in.iterated = false;
  BOOST_TEST((answer(in).hang.answer == HangAnswer::kMissing && answer(in).by_host_code));
  in.observations[0].call->seq = 5000;
  BOOST_TEST((answer(in).hang.answer == HangAnswer::kUnknown));
}

BOOST_AUTO_TEST_CASE(a_long_wait_for_a_key_of_the_store_is_for_host_code) {
  HangInput in = of({waiting(1, -1, "store")});
  in.iterated = false;
  const HangJudgement a = answer(in);
  BOOST_TEST((a.hang.answer == HangAnswer::kMissing && a.by_host_code && a.hang.waited_for.empty()));
  in.observations[0].waited_ns = kNsPerSecond;
  BOOST_TEST((answer(in).hang.answer == HangAnswer::kUnknown));
}

BOOST_AUTO_TEST_CASE(a_rank_that_left_is_the_cause) {
  HangInput in = of({waiting(0, 70), waiting(1, 70), waiting(3, 70)}, 4);
  RankExit exited;
  exited.kind = ExitKind::kException;
  exited.rank = 2;
  exited.reason = "CUDA out of memory";
  in.exits.push_back(exited);
  const HangJudgement a = answer(in);
  BOOST_TEST((a.hang.answer == HangAnswer::kLeft && a.hang.waited_for == Ranks{2}));
  BOOST_TEST(a.title == "Rank 2 raised an exception: CUDA out of memory");
}

BOOST_AUTO_TEST_CASE(what_a_desync_report_states_counts) {
  HangInput in = of({waiting(0, 70), waiting(1, 70)});
  HangClaim output;
  output.ranks = {5};
  output.call.seq = 70;
  in.claims.push_back(output);
  const HangJudgement a = answer(in);
  BOOST_TEST((a.hang.answer == HangAnswer::kMissing && a.hang.waited_for == Ranks{5}));
  BOOST_TEST(a.title == "Rank 5 never joined ALLREDUCE #70");
}

BOOST_AUTO_TEST_CASE(the_table_has_each_rank_with_its_last_operation) {
  const HangJudgement a = answer(of({waiting(0, 13), waiting(1, 13), at(11, 12)}));
  BOOST_REQUIRE(a.hang.hang_state.size() == 2u);
  BOOST_TEST((a.hang.hang_state[0].ranks == Ranks{0, 1} && a.hang.hang_state[0].place == CallPlace::kWaits));
  BOOST_TEST((a.hang.hang_state[1].ranks == Ranks{11} && a.hang.hang_state[1].place == CallPlace::kFinished));
}

namespace {

// A dump of a rank: its numbers in a group, and the operation in which it waits; -1: in none.
Observation dumped(uint32_t rank, ObservedGroup group, int64_t enqueued, int64_t waits) {
  Observation s;
  s.source = ObservationSource::kFlight;
  s.rank = rank;
  s.group = std::move(group);
  s.enqueued = enqueued;
  s.completed = waits < 0 ? enqueued : waits - 1;
  if (waits >= 0) s.call = ObservedCall{"all_reduce", waits, {}, {}, {}, {}, true};
  return s;
}
const ObservedGroup kAll{"0", "default_pg", RankList({0, 1, 2, 3, 4, 5}), 6};
const ObservedGroup kLeftHalf{"1", "dp", RankList({0, 1, 2}), 3},
    kRightHalf{"2", "dp", RankList({3, 4, 5}), 3};

}  // namespace

BOOST_AUTO_TEST_CASE(who_has_not_finished_what_its_peers_finished_has_a_stuck_device) {
  const HangJudgement a =
      answer(of({dumped(0, kLeftHalf, 9, 8), dumped(1, kLeftHalf, 9, 9), dumped(2, kLeftHalf, 9, 9)}));
  BOOST_TEST((a.hang.answer == HangAnswer::kUnfinished && a.hang.waited_for == Ranks{0}));
}

BOOST_AUTO_TEST_CASE(sides_that_wait_for_each_other_are_the_programs_fault_and_the_smaller_is_named) {
  std::vector<Observation> observations;
  for (const uint32_t rank : {0u, 1u}) observations.push_back(dumped(rank, kLeftHalf, 9, 9));
  for (const uint32_t rank : {3u, 4u}) observations.push_back(dumped(rank, kRightHalf, 9, 9));
  for (const uint32_t rank : {0u, 1u, 3u, 4u}) observations.push_back(dumped(rank, kAll, 4, -1));
  for (const uint32_t rank : {2u, 5u}) {
    observations.push_back(dumped(rank, rank == 2 ? kLeftHalf : kRightHalf, 8, -1));
    observations.push_back(dumped(rank, kAll, 5, 5));
  }
  const HangJudgement a = answer(of(observations, 6));
  BOOST_TEST((a.hang.answer == HangAnswer::kMismatch));
  BOOST_TEST((a.hang.waited_for == Ranks{2, 5}));
}

BOOST_AUTO_TEST_CASE(a_circle_names_both_its_groups_and_quotes_four_ranks) {
  std::vector<Observation> observations;
  const ObservedGroup all{"0", "default_pg", RankList({0, 1, 2, 3, 4, 5, 6, 7}), 8};
  const ObservedGroup left{"1", "dp", RankList({0, 1, 2, 3}), 4};
  for (uint32_t rank = 0; rank < 8; ++rank) {
    const bool in_left = rank < 3;
    if (rank < 4) observations.push_back(dumped(rank, left, in_left ? 9 : 8, in_left ? 9 : -1));
    observations.push_back(dumped(rank, all, in_left ? 4 : 5, in_left ? -1 : 5));
  }
  for (Observation& observation : observations)
    if (observation.call) observation.evidence.text = "rank " + std::to_string(*observation.rank);
  const HangJudgement a = answer(of(observations, 8));
  BOOST_TEST((a.hang.answer == HangAnswer::kMismatch));
  BOOST_TEST(
      a.title ==
      "Ranks wait for each other, each in another group: ranks 3, 4, 5, 6, 7 in all_reduce #5 of group "
      "default_pg, ranks 0, 1, 2 in all_reduce #9 of group dp");
  BOOST_TEST(a.evidence.size() == 4u);
}

// The processes print what they saw first.
BOOST_AUTO_TEST_CASE(who_alone_waits_in_a_group_while_all_wait_in_a_later_operation_has_a_stuck_device) {
  for (const uint32_t others : {0u, 1u}) {
    std::vector<Observation> observations;
    const ObservedGroup pair{"7", "tp", RankList({4, 5, 6, 7}), 4};
    for (uint32_t rank = 0; rank < 16; ++rank) observations.push_back(waiting(rank, 70));
    for (uint32_t rank = 4; rank < 5 + 2 * others; ++rank) {
      observations.push_back(waiting(rank, 300));
      observations.back().group = pair;
    }
    const HangJudgement a = answer(of(observations, 16));
    BOOST_TEST((a.hang.answer == HangAnswer::kUnfinished));
    BOOST_TEST((a.hang.waited_for == (others ? Ranks{} : Ranks{4})));
  }
}

BOOST_AUTO_TEST_CASE(a_stack_does_not_accuse_a_rank_whose_watchdog_reports_the_wait_of_all) {
  HangClaim stack;
  stack.source = ObservationSource::kStack;
  stack.ranks = {3};
  stack.title = "Rank 3 is in host code";
  for (const bool entered : {false, true}) {
    HangInput in = of({waiting(0, 70), waiting(1, 70), waiting(2, 70)});
    if (entered) in.observations.push_back(waiting(3, 70));
    in.claims = {stack};
    BOOST_TEST((answer(in).hang.answer == (entered ? HangAnswer::kUnknown : HangAnswer::kMissing)));
  }
}

BOOST_AUTO_TEST_CASE(a_rank_that_left_did_not_wait_where_its_stack_was) {
  HangInput in = of({waiting(0, 70), waiting(1, 70), waiting(3, 70)}, 4);
  Observation stack = waiting(2, -1);
  stack.source = ObservationSource::kStack;
  stack.state = ObservedState::kInCall;
  in.observations.push_back(stack);
  RankExit exited;
  exited.source = ObservationSource::kRas;
  exited.kind = ExitKind::kUnresponsive;
  exited.rank = 2;
  in.exits.push_back(exited);
  const HangJudgement a = answer(in);
  BOOST_TEST((a.hang.answer == HangAnswer::kLeft && a.hang.waited_for == Ranks{2}));
}

BOOST_AUTO_TEST_CASE(
    of_two_operations_that_all_members_entered_the_one_that_few_devices_have_not_begun_tells) {
  std::vector<Observation> observations;
  const ObservedGroup wide{"1", "dp", RankList({0, 1, 2, 3, 4, 5}), 6};
  const ObservedGroup narrow{"2", "dp", RankList({6, 7, 8, 9}), 4};
  for (uint32_t rank = 0; rank < 10; ++rank) {
    observations.push_back(dumped(rank, rank < 6 ? wide : narrow, 9, 9));
    observations.back().call->started = rank != 8;
  }
  const HangJudgement a = answer(of(observations, 10));
  BOOST_TEST((a.hang.answer == HangAnswer::kUnfinished && a.hang.waited_for == Ranks{8}));
}

BOOST_AUTO_TEST_CASE(one_operation_has_one_row_however_its_sources_spell_it) {
  Observation dump = dumped(0, {"0", "default_pg", {}, 0}, 70, 70);
  dump.call->op = "_reduce_scatter_base";
  const HangJudgement a = answer(of({waiting(0, 70, "_REDUCE_SCATTER_BASE"), dump}));
  BOOST_REQUIRE(a.hang.hang_state.size() == 1u);
  BOOST_TEST((a.hang.hang_state[0].ranks == Ranks{0}));
}

BOOST_AUTO_TEST_CASE(who_is_late_because_it_waits_itself_is_not_named) {
  std::vector<Observation> observations;
  for (const uint32_t rank : {0u, 1u, 2u}) observations.push_back(dumped(rank, kLeftHalf, 9, 9));
  for (const uint32_t rank : {3u, 4u, 5u}) observations.push_back(dumped(rank, kAll, 5, 5));
  for (const uint32_t rank : {0u, 1u, 2u}) observations.push_back(dumped(rank, kAll, 4, -1));
  const HangJudgement a = answer(of(observations, 6));
  BOOST_TEST((a.hang.answer == HangAnswer::kUnfinished && a.hang.waited_for.empty()));
  BOOST_TEST(a.hang.group == "dp");
}

BOOST_AUTO_TEST_CASE(several_ranks_without_a_word_are_named_only_if_they_share_their_host) {
  std::vector<Observation> observations;
  for (const uint32_t rank : {0u, 1u, 2u, 3u}) observations.push_back(dumped(rank, kAll, 5, 5));
  HangInput in = of(observations, 6);
  BOOST_TEST((answer(in).hang.answer == HangAnswer::kUnknown));
  in.ranks_per_host = 2;
  BOOST_TEST((answer(in).hang.waited_for == Ranks{4, 5}));
  in.ranks_per_host = 5;
  BOOST_TEST((answer(in).hang.answer == HangAnswer::kUnknown));
}

BOOST_AUTO_TEST_CASE(numbers_of_one_source_are_not_compared_with_those_of_another) {
  HangInput in = of({waiting(0, 70), waiting(1, 70)});
  Observation other = dumped(2, {"0", "default_pg", {}, 0}, 7, -1);
  in.observations.push_back(other);
  BOOST_TEST((answer(in).hang.answer == HangAnswer::kUnknown || !answer(in).certain));
}

BOOST_AUTO_TEST_CASE(sources_that_agree_raise_the_confidence_and_others_lower_it) {
  HangInput in = of({waiting(0, 70), waiting(1, 70)});
  HangClaim dump{HangAnswer::kMissing,       {},    {},       {5}, {},  {},
                 ObservationSource::kFlight, false, "Rank 5", {},  0.8, {}};
  in.claims = {dump};
  BOOST_TEST(answer(in).confidence == 0.8);
  HangClaim stack = dump;
  stack.source = ObservationSource::kStack;
  in.claims = {stack, dump};
  BOOST_TEST((answer(in).confidence > 0.8 && answer(in).led == 1u));
  in.claims[0].ranks = {6};
  BOOST_TEST((answer(in).confidence < 0.8 && answer(in).hang.waited_for == Ranks{5}));
}

BOOST_AUTO_TEST_CASE(numbers_a_million_apart_are_not_believed_without_another_rank_near_them) {
  const HangJudgement two = answer(of({waiting(0, 411), waiting(1, 9'140'002'411)}));
  BOOST_TEST((two.hang.answer == HangAnswer::kUnknown));
  const HangJudgement stray = answer(of({waiting(0, 411), waiting(2, 411), waiting(1, 9'140'002'411)}));
  BOOST_TEST((stray.hang.answer == HangAnswer::kUnknown));
  // Two ranks agree on each side.
  const HangJudgement agreed =
      answer(of({waiting(0, 411), waiting(2, 411), waiting(1, 9'140'002), waiting(3, 9'140'002)}));
  BOOST_TEST((agreed.hang.answer == HangAnswer::kMismatch));
}

BOOST_AUTO_TEST_CASE(a_rank_in_the_barrier_behind_the_loop_has_left_it) {
  std::vector<Observation> observations;
  for (uint32_t rank = 0; rank < 8; ++rank) {
    Observation one = waiting(rank, 1040);
    if (rank == 3)
      one.call = ObservedCall{"BARRIER", 812, {}, {}, {}, {}, true};
    else
      one.group = {"5", "data_parallel", {}, 0};
    observations.push_back(one);
  }
  const HangJudgement a = answer(of(observations));
  BOOST_TEST((a.hang.answer == HangAnswer::kMismatch && a.left_loop));
  BOOST_TEST((a.hang.waited_for == Ranks{3} && a.hang.waiting.size() == 7));
  BOOST_TEST(a.title ==
             "Rank 3 has left its loop: it waits in BARRIER #812, 7 ranks wait in ALLREDUCE #1040");
}

BOOST_AUTO_TEST_CASE(one_rank_that_still_has_batches_is_in_its_loop_while_the_others_left_theirs) {
  std::vector<Observation> observations;
  for (uint32_t rank = 0; rank < 8; ++rank) {
    Observation one = waiting(rank, 1040);
    if (rank != 3) one.call = ObservedCall{"BARRIER", 1040, 1, 1, {}, {}, true};
    observations.push_back(one);
  }
  const HangJudgement a = answer(of(observations));
  BOOST_TEST((a.hang.answer == HangAnswer::kMismatch && a.left_loop && a.hang.waited_for == Ranks{3}));
  BOOST_TEST(
      a.title ==
      "Rank 3 is still in its loop: it waits in ALLREDUCE #1040, 7 ranks wait in BARRIER #1040 and left "
      "theirs");
  // One element may as well be a number of the loop.
  for (Observation& one : observations)
    if (one.rank != 3u) one.call->op = "ALLREDUCE";
  BOOST_TEST(
      (!answer(of(observations)).left_loop && answer(of(observations)).hang.answer == HangAnswer::kMismatch));
}

BOOST_AUTO_TEST_CASE(stacks_of_a_rank_in_the_barrier_behind_the_loop_show_that_it_left) {
  std::vector<Observation> observations;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Observation one = waiting(rank, -1, rank == 1 ? "barrier" : "all_reduce");
    one.source = ObservationSource::kStack;
    one.group = {};
    one.state = ObservedState::kInCall;
    observations.push_back(one);
  }
  HangInput in = of(observations);
  HangClaim output;
  output.answer = HangAnswer::kMismatch;
  output.source = ObservationSource::kStack;
  output.ranks = {1};
  output.title = "Rank 1 waits in another collective than its peers";
  in.claims = {output};
  const HangJudgement a = answer(in);
  BOOST_TEST(a.left_loop);
  BOOST_TEST(a.title == "Rank 1 has left its loop: it waits in barrier, 3 ranks wait in all_reduce");
  in.iterated = false;
  BOOST_TEST(answer(in).title == output.title);
}

BOOST_AUTO_TEST_CASE(a_barrier_of_another_group_than_the_default_one_says_nothing_of_a_loop) {
  std::vector<Observation> observations;
  for (uint32_t rank = 0; rank < 8; ++rank) {
    Observation one = waiting(rank, 1040);
    one.group = {rank == 3 ? "7" : "5", "", {}, 0};
    if (rank == 3) one.call->op = "BARRIER";
    observations.push_back(one);
  }
  BOOST_TEST((answer(of(observations)).hang.answer == HangAnswer::kUnknown));
}

BOOST_AUTO_TEST_CASE(a_barrier_before_the_first_iteration_is_behind_no_loop) {
  HangInput in = of({waiting(0, 7), waiting(1, 7), waiting(2, 7, "BARRIER")});
  in.iterated = false;
  const HangJudgement a = answer(in);
  BOOST_TEST((a.hang.answer == HangAnswer::kMismatch && !a.left_loop));
}

BOOST_AUTO_TEST_CASE(a_rank_that_still_tokenizes_is_named_with_its_bar_and_the_limit_of_the_others) {
  std::vector<Observation> observations;
  for (const uint32_t rank : {1u, 2u, 3u}) {
    observations.push_back(waiting(rank, 1, "ALLREDUCE", 1));
    observations.back().waited_ns = 1800 * kNsPerSecond;
  }
  HangInput in = of(observations);
  in.iterated = false;
  in.preparing = read_preparing("Map:  88%|####  | 880/1000 [29:55<04:04, 0.49 examples/s]", {});
  const HangJudgement a = answer(in);
  BOOST_TEST((a.hang.answer == HangAnswer::kMissing && a.by_host_code && a.prepares));
  BOOST_TEST((a.hang.waited_for == Ranks{0} && a.hang.waiting == Ranks{1, 2, 3}));
  BOOST_TEST(
      a.title ==
      "Rank 0 was still preparing data (Map 88 %, 29:55) when the time-out of the others ended after 30 min");
  // The writer of the bar is the late rank, if it does not wait itself.
  in.preparing->rank = 7;
  BOOST_TEST((answer(in).hang.waited_for == Ranks{7}));
  in.preparing->rank = 2;
  BOOST_TEST((answer(in).hang.waited_for == Ranks{0}));
  in.observations.pop_back();
  in.world = 4;  // 0 and 3 do not wait
  BOOST_TEST(answer(in).hang.waited_for.empty());
}

BOOST_AUTO_TEST_CASE(a_bar_that_filled_the_wait_explains_any_early_operation) {
  HangInput in = of({waiting(1, 4, "BROADCAST")});
  in.iterated = false;
  in.preparing = read_preparing("Tokenizing:  40%|##  | 4/10 [09:40<12:00]", 0u);
  BOOST_TEST((answer(in).hang.answer == HangAnswer::kMissing && answer(in).hang.waited_for == Ranks{0}));
  in.preparing = read_preparing("Tokenizing:  40%|##  | 4/10 [00:40<12:00]", 0u);
  BOOST_TEST((answer(in).hang.answer == HangAnswer::kUnknown));
}

BOOST_AUTO_TEST_CASE(peers_that_lost_an_address_name_the_only_rank_without_a_line) {
  HangInput in = of({waiting(0, 70), waiting(1, 70), waiting(3, 70)});
  RankExit exited;
  exited.host = "10.0.0.3";
  exited.by_peers = true;
  exited.reason = "its peers saw it close the connection";
  in.exits = {exited};
  in.logged = {0, 1, 3};
  const HangJudgement a = answer(in);
  BOOST_TEST((a.hang.answer == HangAnswer::kLeft && a.by_silence && a.hang.waited_for == Ranks{2}));
  in.logged = {0, 1, 3, 6};
  BOOST_TEST(answer(in).hang.waited_for.empty());
  in.logged = {0, 1, 2, 3};
  BOOST_TEST(answer(in).hang.waited_for.empty());
}

BOOST_AUTO_TEST_CASE(the_only_rank_without_a_line_is_asked_for) {
  HangInput in = of({waiting(0, 70), waiting(1, 70), waiting(3, 70)});
  in.logged = {0, 1, 3};
  const HangJudgement a = answer(in);
  BOOST_TEST((a.hang.answer == HangAnswer::kUnknown && a.hang.waited_for.empty()));
  BOOST_TEST_REQUIRE(!a.missing.empty());
  BOOST_TEST(a.missing[0] == "what rank 2 does: of ranks 0 to 3 only it logged nothing");
}

BOOST_AUTO_TEST_SUITE_END()
