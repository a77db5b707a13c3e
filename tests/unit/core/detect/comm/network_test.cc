// Durations of transfers, their usual values, and the accused part of the network, for jobs of a few ranks
// specified by hand.
#include "core/detect/comm/network.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>

#include "core/detect/comm/judge.h"
#include "hand_trace.h"

using namespace culprit;
using boost::test_tools::tolerance;
using comm::NetKind;
using comm::hand::Analysis;
using comm::hand::Ranks;
using comm::hand::Trace;

namespace {

constexpr double kNear = 0.02;  // ms: stamps of whole nanoseconds
constexpr uint32_t kSteps = 12, kSlowFrom = 6;

// Factor of an operation's duration over the usual one.
using Slow = std::function<double(const Ranks&)>;

bool has(const Ranks& group, uint32_t rank) { return std::count(group.begin(), group.end(), rank) > 0; }

// Four hosts of `local` ranks. Each pair of neighbours on a host reduces (2 ms), then each rank with the same
// local rank of each other host in turn (10 ms), then all (1 ms).
struct Mesh {
  uint32_t local = 2;

  Ranks of_host(uint32_t host) const {
    Ranks out;
    for (uint32_t i = 0; i < local; ++i) out.push_back(host * local + i);
    return out;
  }
  bool crosses(const Ranks& group) const { return group.front() / local != group.back() / local; }
  bool on(const Ranks& group, uint32_t host) const {
    return std::any_of(group.begin(), group.end(), [&](uint32_t r) { return r / local == host; });
  }

  void step(Trace& t, const Slow& slow) const {
    const auto reduce = [&](const Ranks& group, double ms) {
      t.collective({.group = group, .ms = ms * slow(group)});
    };
    t.work_all(20);
    for (uint32_t host = 0; host < 4 && local > 1; ++host) reduce(of_host(host), 2);
    for (const auto& [a, b] : {std::pair{0u, 1u}, {2u, 3u}, {0u, 2u}, {1u, 3u}, {0u, 3u}, {1u, 2u}})
      for (uint32_t i = 0; i < local; ++i) reduce({a * local + i, b * local + i}, 10);
    t.collective({.group = t.all(), .ms = 1});
    t.end_step();
  }
  Analysis run(const Slow& slow, uint32_t slow_from = kSlowFrom) const {
    Trace trace(4 * local, local);
    for (uint32_t s = 0; s < kSteps; ++s)
      step(
          trace, s >= slow_from ? slow : [](const Ranks&) { return 1.0; });
    return Analysis(trace);
  }
};

constexpr Mesh kMesh;

struct Case {
  std::string name;
  Slow slow;
  std::optional<NetKind> kind = {};  // none: no part is named
  uint32_t a = 0, b = 0;
  double cost = 0;  // ms
  uint32_t slow_from = kSlowFrom;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

std::vector<Case> cases() {
  const auto four_times = [](auto is_slow) -> Slow {
    return [is_slow](const Ranks& group) { return is_slow(group) ? 4.0 : 1.0; };
  };
  const Slow nic = four_times([](const Ranks& g) { return kMesh.crosses(g) && has(g, 3); });
  return {
      {.name = "a healthy network", .slow = [](const Ranks&) { return 1.0; }},
      {.name = "transfers of one rank to all other hosts: its NIC",
       .slow = nic,
       .kind = NetKind::kNic,
       .a = 3,
       .cost = 90},
      {.name = "the same from the first step on",
       .slow = nic,
       .kind = NetKind::kNic,
       .a = 3,
       .cost = 90,
       .slow_from = 0},
      {.name = "transfers of all ranks of a host to other hosts: the host",
       .slow = four_times([](const Ranks& g) { return kMesh.crosses(g) && kMesh.on(g, 1); }),
       .kind = NetKind::kHost,
       .a = 1,
       .cost = 90},
      {.name = "transfers between two hosts: their link",
       .slow = four_times([](const Ranks& g) { return kMesh.on(g, 1) && kMesh.on(g, 2); }),
       .kind = NetKind::kLink,
       .a = 1,
       .b = 2,
       .cost = 30},
      {.name = "transfers within a host: its NVLink",
       .slow = four_times([](const Ranks& g) { return !kMesh.crosses(g) && kMesh.on(g, 2); }),
       .kind = NetKind::kNvlink,
       .a = 2,
       .cost = 6},
      {.name = "transfers that are slower by a fifth are no fault",
       .slow = [](const Ranks& g) { return has(g, 3) ? 1.2 : 1.0; }},
  };
}

}  // namespace

BOOST_DATA_TEST_CASE(the_part_that_all_slow_transfers_pass_is_named_and_no_rank,
                     boost::unit_test::data::make(cases()), c) {
  const Analysis analysis = kMesh.run(c.slow, c.slow_from);
  BOOST_REQUIRE(analysis.result().network.size() == (c.kind ? 1u : 0u));
  for (uint32_t r = 0; r < 8; ++r) BOOST_TEST(std::abs(analysis.rank(r).excess) < kNear);
  if (!c.kind) return;
  const comm::NetEffect& part = analysis.result().network[0];
  BOOST_TEST((part.kind == *c.kind));
  BOOST_TEST((*c.kind == NetKind::kNic ? analysis.cluster().ranks()[part.a].rank : part.a) == c.a);
  if (*c.kind == NetKind::kLink) BOOST_TEST(part.b == c.b);
  BOOST_TEST(part.sure > 0.9);
  BOOST_TEST(part.ratio == 4, tolerance(1e-3));
  BOOST_TEST(part.cost == c.cost, tolerance(1e-3));
}

BOOST_AUTO_TEST_CASE(of_two_parts_that_explain_the_same_the_one_nearer_the_rank_is_named_half_as_surely) {
  const Mesh one_rank_each{.local = 1};  // a host's only NIC
  const Analysis analysis = one_rank_each.run([](const Ranks& g) { return has(g, 1) ? 4.0 : 1.0; });
  BOOST_REQUIRE(analysis.result().network.size() == 1u);
  const comm::NetEffect& part = analysis.result().network[0];
  BOOST_TEST((part.kind == NetKind::kNic));
  BOOST_TEST(analysis.cluster().ranks()[part.a].rank == 1u);
  BOOST_TEST(part.sure > 0.45);
  BOOST_TEST(part.sure <= 0.5);
}

// Twelve hosts with two ranks each; hosts 0 to 5 are below one switch. Pairs of hosts reduce, then the even
// and the odd hosts. Two hosts explain the large groups, and a link seems to explain the pair that is left.
BOOST_AUTO_TEST_CASE(hosts_below_a_slow_switch_are_named_and_no_link_between_them) {
  constexpr uint32_t kHosts = 12, kBelow = 6;
  Trace trace(2 * kHosts, 2);
  for (uint32_t s = 0; s < kSteps; ++s) {
    const auto reduce = [&](const Ranks& group, double ms) {
      const bool slow = s >= kSlowFrom && group[0] / 2 < kBelow;
      trace.collective({.group = group, .ms = slow ? 4 * ms : ms});
    };
    trace.work_all(20);
    for (uint32_t i = 0; i < 2; ++i) {
      for (uint32_t host = 0; host < kHosts; host += 2) reduce({2 * host + i, 2 * host + 2 + i}, 10);
      for (uint32_t odd = 0; odd < 2; ++odd) {
        Ranks group;
        for (uint32_t host = odd; host < kHosts; host += 2) group.push_back(2 * host + i);
        reduce(group, 20);
      }
    }
    trace.collective({.group = trace.all(), .ms = 1});
    trace.end_step();
  }
  const Analysis analysis(trace);
  const comm::Judgement judgement = comm::judge(analysis.cluster(), analysis.steps());
  BOOST_REQUIRE(judgement.culprits.size() == 1u);
  BOOST_TEST((judgement.culprits[0].kind == SlowPart::kSwitch));
  Ranks hosts = judgement.culprits[0].hosts;
  std::ranges::sort(hosts);
  BOOST_TEST((hosts == Ranks{0, 1, 2, 3, 4, 5}));
}

// Any of three ranks may be the cause of the slowness of their only group.
BOOST_AUTO_TEST_CASE(where_three_parts_explain_the_same_the_judge_names_none) {
  Trace trace(3);
  for (uint32_t s = 0; s < 40; ++s) {
    trace.work_all(20);
    trace.collective({.group = trace.all(), .ms = s < 12 ? 10. : 40.});
    trace.end_step();
  }
  const Analysis analysis(trace);
  BOOST_REQUIRE(analysis.result().network.size() == 1u);
  BOOST_TEST(analysis.result().network[0].sure < 0.3);
  const comm::Judgement judgement = comm::judge(analysis.cluster(), analysis.steps());
  BOOST_REQUIRE(judgement.culprits.size() == 1u);
  BOOST_TEST(judgement.culprits[0].ambiguous);
}

BOOST_AUTO_TEST_CASE(a_collective_takes_as_long_as_its_last_rank_is_inside) {
  Trace trace(4);
  trace.work({0, 10, 40, 30});
  trace.collective({.group = trace.all(), .ms = 5});
  trace.end_step();
  const auto operations = Analysis(trace).operations(trace.all());
  BOOST_REQUIRE(operations.size() == 1u);
  BOOST_TEST(operations[0].transfer_ms == 5, tolerance(1e-4));
}

BOOST_AUTO_TEST_CASE(a_send_takes_from_when_both_are_there_whatever_their_clocks_say) {
  for (const double skew_ms : {0., 2000.}) {
    Trace trace(2);
    trace.skew(1, skew_ms);
    trace.work({0, 30});
    trace.send(0, 1, 4);  // the receiver is late
    trace.work({60, 0});
    trace.send(0, 1, 4);  // the sender is late
    trace.collective({.group = trace.all(), .ms = 1});
    trace.end_step();
    const Analysis analysis(trace);
    const auto sends = analysis.operations({0, 1});
    for (const comm::Instance& one : sends)
      if (is_p2p(one.op)) BOOST_TEST(std::abs(one.transfer_ms - 4) < kNear);
    const auto& ops = analysis.step().ops;
    const auto waits_not = std::count_if(ops.begin(), ops.end(), [](const comm::Op& op) { return op.alone; });
    BOOST_TEST(waits_not == 1);  // the first sender had left before its receiver entered
    BOOST_TEST(analysis.result().network.empty());
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_measured_is_not_compared) {
  Trace trace(4);
  trace.collective({.group = trace.all(), .ms = 5});
  trace.collective(
      {.group = trace.all(), .ms = 5, .op = CommOp::kBroadcast});  // its ranks leave at different times
  trace.collective({.group = trace.all(), .ms = 5});
  trace.lose_last(2);  // it may have entered last
  trace.end_step();
  const auto operations = Analysis(trace).operations(trace.all());
  BOOST_REQUIRE(operations.size() == 3u);
  BOOST_TEST(operations[0].transfer_ms == 5, tolerance(1e-4));
  for (const size_t i : {1, 2}) {
    BOOST_TEST(operations[i].transfer_ms < 0);
    BOOST_TEST(operations[i].slower_ms == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_group_one_of_whose_few_ranks_is_never_recorded_is_not_compared) {
  Trace trace(12);
  const std::vector<Ranks> groups = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}};
  for (const Ranks& group : groups) trace.collective({.group = group, .ms = group[0] == 4 ? 50. : 5.});
  trace.lose_last(5);
  trace.end_step();
  const Analysis analysis(trace);
  BOOST_TEST(analysis.operations(groups[0]).at(0).transfer_ms == 5, tolerance(1e-4));
  BOOST_TEST(analysis.operations({4, 6, 7}).at(0).transfer_ms < 0);
  BOOST_TEST(analysis.result().network.empty());
}

BOOST_AUTO_TEST_CASE(usual_is_what_like_operations_take_in_the_first_steps) {
  struct Row {
    std::string name;
    uint32_t healthy;  // steps, of 40; then both groups take 16 ms in place of 10
    double slower;     // ms, in the last step
  };
  const Row rows[] = {{"always", 40, 0}, {"slow in the last step", 39, 6}, {"slow for 30 steps", 10, 6}};
  for (const Row& row : rows) BOOST_TEST_CONTEXT(row.name) {
      Trace trace(4);
      for (uint32_t s = 0; s < 40; ++s) {
        for (const uint32_t r : {0, 2})
          trace.collective({.group = {r, r + 1}, .ms = s < row.healthy ? 10. : 16.});
        trace.end_step();
      }
      const auto operations = Analysis(trace).operations({0, 1});
      BOOST_REQUIRE(operations.size() == 1u);
      BOOST_TEST(operations[0].usual_ms == (row.healthy > 0 ? 10 : 16), tolerance(1e-4));
      BOOST_TEST(std::abs(operations[0].slower_ms - row.slower) < kNear);
    }
}

BOOST_AUTO_TEST_CASE(a_group_that_is_slow_from_the_first_step_on_is_compared_with_its_like) {
  Trace trace(6);
  for (const uint32_t r : {0, 2, 4}) trace.collective({.group = {r, r + 1}, .ms = r == 0 ? 30. : 10.});
  trace.end_step();
  const Analysis analysis(trace);
  BOOST_TEST(analysis.operations({0, 1}).at(0).slower_ms == 20, tolerance(1e-4));
  BOOST_TEST(analysis.operations({2, 3}).at(0).slower_ms < kNear);
}
