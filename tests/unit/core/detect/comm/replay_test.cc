// The time that a step would save: computed by hand, for jobs of a few ranks.
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
  double step_ms = 0;
  std::vector<double> saved;  // ms, by rank
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

// Stage 0 computes and sends, stage 1 receives and computes, then all reduce.
void pipeline(Trace& t, const std::vector<double>& first, const std::vector<double>& second) {
  const auto n = static_cast<uint32_t>(first.size());
  for (uint32_t r = 0; r < n; ++r) {
    t.work(r, first[r]);
    t.send(r, r + n, 1);
    t.work(r + n, second[r]);
  }
  t.collective({.group = t.all(), .ms = 5});
}

// Four layers; the gradients of each are reduced while the next one computes. Rank 2 takes 40 ms more than
// usual, and 36 ms more than rank 1.
void gradients(Trace& t) {
  for (int layer = 0; layer < 4; ++layer) {
    t.work({20, 21, 30, 19});
    t.collective({.group = t.all(), .ms = 5, .op = CommOp::kReduceScatter, .background = true});
  }
}

const std::vector<Case> kCases = {
    {.name = "a rank late by 30 ms in a step of 135 costs 30",
     .step =
         [](Trace& t) {
           t.work({100, 100, 130, 100});
           t.collective({.group = t.all(), .ms = 5});
         },
     .step_ms = 135,
     .saved = {0, 0, 30, 0}},
    {.name = "without the last of two late ranks all wait for the other",
     .step =
         [](Trace& t) {
           t.work({100, 120, 130, 100});
           t.collective({.group = t.all(), .ms = 5});
         },
     .step_ms = 135,
     .saved = {0, 0, 10, 0}},
    {.name = "delays one after another add up",
     .step =
         [](Trace& t) {
           t.work({50, 50, 80, 50});
           t.collective({.group = t.all(), .ms = 5});
           t.work({70, 50, 50, 50});
           t.collective({.group = t.all(), .ms = 5});
         },
     .step_ms = 160,
     .saved = {20, 0, 30, 0}},
    {.name = "a host is left out as a whole, and its ranks share the saving by their excess",
     .ranks = 8,
     .ranks_per_host = 2,
     .step =
         [](Trace& t) {
           t.work({100, 100, 120, 130, 100, 100, 100, 100});
           t.collective({.group = t.all(), .ms = 5});
         },
     .step_ms = 135,
     .saved = {0, 0, 12, 18, 0, 0, 0, 0}},
    {.name = "a receiver that waits for a slow sender costs nothing",
     .ranks = 8,
     .step =
         [](Trace& t) {
           pipeline(t, {50, 50, 70, 50}, {40, 40, 40, 40});
         },
     .step_ms = 116,
     .saved = {0, 0, 20, 0, 0, 0, 0, 0}},
    {.name = "excess that the receiver's replica has time for costs only what is beyond",
     .ranks = 8,
     .step =
         [](Trace& t) {
           pipeline(t, {50, 50, 80, 50}, {40, 58, 40, 40});
         },
     .step_ms = 126,
     .saved = {0, 0, 12, 0, 0, 0, 0, 0}},
    {.name = "two stages of one replica that are slow cost their sum, each its own",
     .ranks = 8,
     .step =
         [](Trace& t) {
           pipeline(t, {50, 50, 70, 50}, {40, 40, 55, 40});
         },
     .step_ms = 131,
     .saved = {0, 0, 20, 0, 0, 0, 15, 0}},
    {.name = "in pairs, what one pair loses before the other is late costs nothing",
     .step =
         [](Trace& t) {
           t.work({50, 80, 50, 50});
           t.collective({.group = {0, 1}, .ms = 5});
           t.collective({.group = {2, 3}, .ms = 5});
           t.work({50, 50, 50, 100});
           t.collective({.group = t.all(), .ms = 5});
         },
     .step_ms = 160,
     .saved = {0, 0, 0, 20}},
    {.name = "work during reductions in the background is work",
     .step =
         [](Trace& t) {
           gradients(t);
           t.work_all(20);
           t.collective({.group = t.all(), .ms = 5});
         },
     .step_ms = 145,
     .saved = {0, 0, 36, 0}},
    {.name = "the last reduction in the background is waited for",
     .step =
         [](Trace& t) {
           gradients(t);
           for (const uint32_t r : t.all()) t.wait(r);
           t.work_all(20);
           t.collective({.group = t.all(), .ms = 5});
         },
     .step_ms = 150,
     .saved = {0, 0, 36, 0}},
};

void check_saved(const Analysis& analysis, const std::vector<double>& saved) {
  for (uint32_t r = 0; r < saved.size(); ++r)
    BOOST_TEST(std::abs(analysis.rank(r).path - saved[r]) < kNear,
               "rank " << r << ": " << analysis.rank(r).path << ", not " << saved[r]);
}

}  // namespace

BOOST_DATA_TEST_CASE(a_slow_rank_costs_what_the_step_is_shorter_by_without_it,
                     boost::unit_test::data::make(kCases), c) {
  Trace trace(c.ranks, c.ranks_per_host);
  c.step(trace);
  trace.end_step();
  const Analysis analysis(trace);
  BOOST_TEST(analysis.result().step_ms == c.step_ms, tolerance(1e-4));
  check_saved(analysis, c.saved);
}

BOOST_AUTO_TEST_CASE(clocks_that_differ_by_seconds_change_no_cost) {
  Trace trace(8);
  trace.skew(2, 3000);
  trace.skew(6, -1500);
  for (int step = 0; step < 2; ++step) {
    pipeline(trace, {50, 50, 70, 50}, {40, 40, 40, 40});
    trace.end_step();
  }
  check_saved(Analysis(trace), {0, 0, 20, 0, 0, 0, 0, 0});
}

// Pairs reduce, then all: operations of the pair {2, 3} take 25 ms in place of 5.
Trace slow_pair(double work_of_rank_0) {
  Trace trace(4);
  for (int step = 0; step < 8; ++step) {
    const bool slow = step == 7;
    trace.work({slow ? work_of_rank_0 : 100, 100, 100, 100});
    trace.collective({.group = {0, 1}, .ms = 5});
    trace.collective({.group = {2, 3}, .ms = slow ? 25. : 5.});
    trace.collective({.group = trace.all(), .ms = 5});
    trace.end_step();
  }
  return trace;
}

// The test sets the slow part: neither of two pairs is an outlier.
BOOST_AUTO_TEST_CASE(a_slow_part_of_the_network_costs_what_the_step_is_shorter_by_with_usual_transfers) {
  struct Row {
    std::string name;
    double work_of_rank_0, saved;
  };
  const Row rows[] = {{"all wait for the pair", 100, 20}, {"a late rank takes most of that time", 115, 5}};
  for (const Row& row : rows) BOOST_TEST_CONTEXT(row.name) {
      const Analysis analysis(slow_pair(row.work_of_rank_0), [](comm::Step& step) {
        comm::NetEffect effect;
        for (const comm::Instance& i : step.instances)
          if (i.slower_ms > 1) effect.channels.push_back(i.local);
        step.result.network = {effect};
      });
      BOOST_TEST(analysis.result().network.at(0).cost == row.saved, tolerance(1e-3));
    }
}

// Rank 2 has an exit that is 40 ms too late: no order of waiting explains it. The path leads to rank 1.
BOOST_AUTO_TEST_CASE(a_replay_that_misses_the_steps_length_is_discarded_and_the_path_counts) {
  for (const double late_ms : {0., 40.}) {
    Trace trace(4);
    for (int i = 0; i < 4; ++i)
      trace.collective({.group = trace.all(), .ms = 1});  // they synchronise the clocks
    trace.work({100, 120, 130, 100});
    trace.collective({.group = trace.all(), .ms = 5});
    trace.leave_late(2, late_ms);
    trace.end_step();
    if (late_ms > 0)
      check_saved(Analysis(trace), {0, 20, 0, 0});
    else
      check_saved(Analysis(trace), {0, 0, 10, 0});
  }
}

// Ranks 4 and 5 are equally late, so one of them alone saves no time.
BOOST_AUTO_TEST_CASE(where_records_are_lost_a_saving_of_nothing_is_no_answer) {
  for (const bool lost : {false, true}) {
    Trace trace(6);
    for (int part = 0; part < 3; ++part) {
      trace.work({50, 50, 50, 50, 80, 80});
      trace.collective({.group = trace.all(), .ms = 5});
      if (part == 1 && lost) trace.lose_last(0);
    }
    trace.end_step();
    const Analysis analysis(trace);
    check_saved(analysis, {0, 0, 0, 0, lost ? 90. : 0., 0});
    BOOST_TEST(std::abs(analysis.rank(5).excess - 90) < kNear);
  }
}
