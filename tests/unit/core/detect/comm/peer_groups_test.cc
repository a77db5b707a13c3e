// The peers of each rank, and its excess over them: expectations computed by hand.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>

#include "hand_trace.h"

using namespace culprit;
using boost::test_tools::tolerance;
using comm::hand::Analysis;
using comm::hand::Ranks;
using comm::hand::Trace;

namespace {

constexpr double kNear = 0.02;  // ms: floats, and stamps of whole nanoseconds

struct Case {
  std::string name;
  uint32_t ranks = 4, ranks_per_host = 1;
  std::function<void(Trace&)> step;
  std::vector<double> excess;  // ms, by rank
  std::vector<uint32_t> peers;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

// Stages with this `work` of each replica, which pass on a batch; then all reduce.
void stages(Trace& t, const std::vector<std::vector<double>>& work) {
  const auto n = static_cast<uint32_t>(work[0].size());
  for (uint32_t r = 0; r < n; ++r)
    for (uint32_t s = 0; s < work.size(); ++s) {
      t.work(s * n + r, work[s][r]);
      if (s + 1 < work.size()) t.send(s * n + r, (s + 1) * n + r, 1);
    }
  t.collective({.group = t.all(), .ms = 5});
}

// Two stages without records of sends: each reduces separately, then all do.
void groups(Trace& t, const std::vector<double>& work) {
  t.work(work);
  t.collective({.group = {0, 1, 2, 3}, .ms = 2});
  t.collective({.group = {4, 5, 6, 7}, .ms = 2});
  t.work_all(10);
  t.collective({.group = t.all(), .ms = 5});
}

const std::vector<uint32_t> kFour(4, 4), kEight(8, 8), kFourOfEight(8, 4);

const std::vector<Case> kCases = {
    {.name = "excess is what a rank takes beyond the lower median of its peers",
     .step =
         [](Trace& t) {
           t.work({100, 102, 101, 130});
           t.collective({.group = t.all(), .ms = 5});
         },
     .excess = {-1, 1, 0, 29},
     .peers = kFour},
    {.name = "waiting for others is no work of one's own",
     .step =
         [](Trace& t) {
           for (int i = 0; i < 3; ++i) {
             t.work({50, 50, 50, 80});
             t.collective({.group = t.all(), .ms = 5});
           }
         },
     .excess = {0, 0, 0, 90},
     .peers = kFour},
    {.name = "ranks of another stage are compared with their own",
     .ranks = 8,
     .step =
         [](Trace& t) {
           stages(t, {{50, 50, 50, 50}, {100, 100, 125, 100}});
         },
     .excess = {0, 0, 0, 0, 0, 0, 25, 0},
     .peers = kFourOfEight},
    {.name = "stages without sends are distinguished by their reductions",
     .ranks = 8,
     .step =
         [](Trace& t) {
           groups(t, {100, 100, 100, 100, 150, 150, 165, 150});
         },
     .excess = {0, 0, 0, 0, 0, 0, 15, 0},
     .peers = kFourOfEight},
    {.name = "one slow rank sets no group apart",
     .ranks = 8,
     .step =
         [](Trace& t) {
           groups(t, {100, 100, 100, 100, 100, 100, 150, 100});
         },
     .excess = {0, 0, 0, 0, 0, 0, 50, 0},
     .peers = kEight},
    {.name = "a group with one rank that works as usual is not set apart",
     .ranks = 8,
     .step =
         [](Trace& t) {
           groups(t, {100, 100, 100, 100, 150, 150, 150, 100});
         },
     .excess = {0, 0, 0, 0, 50, 50, 50, 0},
     .peers = kEight},
    {.name = "a rank that does what no other does has no peers and no excess",
     .step =
         [](Trace& t) {
           t.work({160, 100, 100, 100});
           t.collective({.group = t.all(), .ms = 5});
           t.work(0, 50);
           t.send(0, 3, 1);
           t.collective({.group = t.all(), .ms = 5});
         },
     .excess = {0, 0, 0, 0},
     .peers = {1, 2, 2, 1}},
    {.name = "gaps that end together where they began apart are a wait, not work",
     .ranks = 8,
     .step =
         [](Trace& t) {
           t.work({20, 20, 50, 50, 80, 80, 110, 110});
           for (const uint32_t r : {0, 2, 4, 6}) t.collective({.group = {r, r + 1}, .ms = 1});
           t.work({100, 100, 70, 70, 40, 40, 10, 10});
           t.collective({.group = t.all(), .ms = 5});
         },
     .excess = {-30, -30, 0, 0, 30, 30, 60, 60},
     .peers = kEight},
    {.name = "what a whole pipeline takes longer for is its data",
     .ranks = 12,
     .step =
         [](Trace& t) {
           stages(t, {{50, 50, 60, 50}, {50, 50, 60, 50}, {50, 50, 60, 50}});
         },
     .excess = std::vector<double>(12, 0),
     .peers = std::vector<uint32_t>(12, 4)},
    {.name = "what one stage of a pipeline takes longer for is its own",
     .ranks = 12,
     .step =
         [](Trace& t) {
           stages(t, {{50, 50, 50, 50}, {50, 50, 60, 50}, {50, 50, 50, 50}});
         },
     .excess = {0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0},
     .peers = std::vector<uint32_t>(12, 4)},
};

Analysis analysed(uint32_t ranks, uint32_t ranks_per_host, const std::function<void(Trace&)>& step) {
  Trace trace(ranks, ranks_per_host);
  step(trace);
  trace.end_step();
  return Analysis(trace);
}

}  // namespace

BOOST_DATA_TEST_CASE(each_rank_is_compared_with_its_peers, boost::unit_test::data::make(kCases), c) {
  const Analysis analysis = analysed(c.ranks, c.ranks_per_host, c.step);
  for (uint32_t r = 0; r < c.ranks; ++r) {
    const comm::RankStep& rank = analysis.rank(r);
    BOOST_TEST(std::abs(rank.excess - c.excess[r]) < kNear,
               "rank " << r << ": " << rank.excess << ", not " << c.excess[r]);
    BOOST_TEST(rank.peers == c.peers[r], "rank " << r << ": " << rank.peers << " peers");
  }
}

BOOST_AUTO_TEST_CASE(the_group_that_is_set_apart_is_stated_with_its_ratio) {
  const Analysis apart = analysed(8, 1, [](Trace& t) {
    groups(t, {100, 100, 100, 100, 166, 166, 170, 166});
  });
  BOOST_REQUIRE(apart.result().slow_group != comm::kNone);
  Ranks members;
  for (const uint32_t m : apart.cluster().comms()[apart.result().slow_group].members)
    members.push_back(apart.cluster().ranks()[m].rank);
  BOOST_TEST(members == (Ranks{4, 5, 6, 7}), boost::test_tools::per_element());
  BOOST_TEST(apart.result().slow_group_ratio == 1.6, tolerance(1e-3));  // 176 ms to 110
  const Analysis alike = analysed(8, 1, [](Trace& t) { groups(t, std::vector<double>(8, 100)); });
  BOOST_TEST(alike.result().slow_group == comm::kNone);
}

// If the record before a gap is lost, the gap contains the lost operation and the wait in it.
BOOST_AUTO_TEST_CASE(the_gap_behind_a_lost_record_is_compared_with_no_peer) {
  const Analysis analysis = analysed(4, 1, [](Trace& t) {
    t.work({50, 50, 50, 120});
    t.collective({.group = t.all(), .ms = 5});
    t.lose_last(1);
    t.work({50, 50, 50, 60});
    t.collective({.group = t.all(), .ms = 5});
  });
  const std::vector<double> excess = {0, 0, 0, 80};
  for (uint32_t r = 0; r < 4; ++r) {
    BOOST_TEST(std::abs(analysis.rank(r).excess - excess[r]) < kNear);
    BOOST_TEST(analysis.rank(r).peers == 4u);
    BOOST_TEST(analysis.rank(r).gaps == (r == 1 ? 0u : 2u));
  }
}

BOOST_AUTO_TEST_CASE(a_slow_device_is_in_excess_at_all_places_and_a_pause_at_one) {
  const Analysis analysis = analysed(4, 1, [](Trace& t) {
    for (int place = 0; place < 10; ++place) {
      t.work({20, 20, 26, place == 3 ? 80. : 20.});
      t.collective({.group = t.all(), .ms = 1});
    }
  });
  BOOST_TEST(analysis.rank(2).excess == 60, tolerance(1e-3));
  BOOST_TEST(analysis.rank(2).largest == 6, tolerance(1e-3));
  BOOST_TEST(analysis.rank(2).even == 1, tolerance(1e-3));
  BOOST_TEST(analysis.rank(3).excess == 60, tolerance(1e-3));
  BOOST_TEST(analysis.rank(3).largest == 60, tolerance(1e-3));
  BOOST_TEST(analysis.rank(3).even == 0.1, tolerance(1e-3));
  BOOST_TEST(analysis.rank(0).self == 200, tolerance(1e-3));
  BOOST_TEST(analysis.rank(0).gaps == 10u);
}

// Ranks of a tensor group compute on the same batch: an excess that all of them share counts against no rank.
BOOST_AUTO_TEST_CASE(excess_that_a_family_shares_does_not_count_against_one_of_it) {
  const auto step = [](double rank_5) {
    return [rank_5](Trace& t) {
      t.work({100, 100, 100, 100, 130, rank_5, 130, 130, 100, 100, 100, 100});
      for (const uint32_t r : {0, 4, 8})
        t.collective({.group = {r, r + 1, r + 2, r + 3}, .ms = 1, .kind = CommGroup::kTp});
      t.collective({.group = t.all(), .ms = 5});
    };
  };
  const Analysis shared = analysed(12, 4, step(130)), one = analysed(12, 4, step(150));
  for (const uint32_t r : {4, 5, 6, 7}) {
    BOOST_TEST(std::abs(shared.rank(r).excess - 30) < kNear);
    BOOST_TEST(std::abs(shared.rank(r).closer) < kNear);
  }
  BOOST_TEST(std::abs(one.rank(5).excess - 50) < kNear);
  BOOST_TEST(std::abs(one.rank(5).closer - 20) < kNear);
}

BOOST_AUTO_TEST_CASE(clocks_that_differ_by_seconds_change_no_excess) {
  Trace trace(8);
  trace.skew(1, 4000);
  trace.skew(5, -2500);
  stages(trace, {{50, 50, 50, 50}, {100, 100, 125, 100}});
  trace.end_step();
  const Analysis analysis(trace);
  for (uint32_t r = 0; r < 8; ++r) BOOST_TEST(std::abs(analysis.rank(r).excess - (r == 6 ? 25 : 0)) < kNear);
}
