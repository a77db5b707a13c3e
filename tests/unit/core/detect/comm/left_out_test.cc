#include "core/detect/comm/left_out.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "core/detect/comm/findings.h"

using namespace culprit;

namespace {

constexpr uint32_t kRanks = 4, kSteps = 20;

// Two all-reduces a step. `skips` leaves out the first of step 10; `late` labels its steps one
// too high from the first on.
struct Program {
  uint32_t skips = UINT32_MAX, late = UINT32_MAX;

  comm::TraceFindings tell() const {
    const JobFile job;
    comm::CommTrace trace(&job, false);
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      uint64_t seq = 0;
      for (uint32_t step = 0; step < kSteps; ++step)
        for (const CommOp op : {CommOp::kAllReduce, CommOp::kAllGather}) {
          const bool second = op == CommOp::kAllGather;
          if (rank == skips && step == 10 && !second) continue;
          CommRecord one;
          one.rank = rank, one.seq = seq++, one.comm = 7, one.comm_size = kRanks, one.op = CommOp::kAllReduce;
          one.step = step + (rank == late ? 1 : 0);
          one.bytes = 1024;
          one.start_ns = (1000 + 100 * step + (second ? 50 : 0) + rank) * 1'000'000;
          one.end_ns = one.start_ns + 10'000'000;
          trace.add_records("node-" + std::to_string(rank), {&one, 1});
        }
    }
    return comm::report_findings(trace);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_rank_that_leaves_out_a_collective_is_behind_from_then_on) {
  const comm::TraceFindings answer = Program{.skips = 2}.tell();
  BOOST_REQUIRE(answer.left_out.has_value());
  BOOST_TEST(answer.left_out->finding.title ==
             "Rank 2 (node-2) left out an operation (all_reduce) in step 10: it is behind 3 peers since");
  BOOST_TEST(answer.left_out->finding.iteration.value() == 10);
}

BOOST_AUTO_TEST_CASE(a_rank_that_counts_steps_differently_from_the_first_on_left_out_nothing) {
  BOOST_TEST(!Program{.late = 2}.tell().left_out);
  BOOST_TEST(!Program{}.tell().left_out);
}
