#include <algorithm>
#include <array>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "core/detect/comm/findings.h"

using namespace culprit;

namespace {

constexpr uint32_t kSteps = 40, kChatter = 80;
constexpr double kNoise = 0.01;  // of a rank's work, from step to step

enum class Waits : uint8_t { kNone, kForReplica, kForAll };

// Two stages of `replicas` ranks, two ranks a host. Each rank works, reduces with its stage, works again and
// reduces with all. Before its first reduction a rank of stage 0 waits until stage 1 enters its own. No
// record shows that wait. With `chatter`, pairs of stage 0 reduce many times a step, whatever stage 1 does.
struct Program {
  std::string name;
  uint32_t replicas = 4;
  Waits waits = Waits::kForReplica;
  bool chatter = false;
  double alike = 0;            // scatter of all ranks' work from step to step
  double imbalance = 0;        // of stage 1's work, from step to step and replica to replica
  uint32_t slow = UINT32_MAX;  // a rank
  double factor = 1.4;
  std::string accused = {};  // its host; empty: no rank

  uint32_t ranks() const { return 2 * replicas; }

  static double uniform(uint64_t a, uint64_t b, uint64_t c) {
    return static_cast<double>(mix64(mix64(a, b), c) % 20001) / 10000 - 1;
  }
  double work_ms(uint32_t rank, uint32_t step, double usual) const {
    const bool late = rank >= replicas;
    const double ms = usual * (1 + alike * uniform(0, step, 4)) * (1 + kNoise * uniform(rank, step, 1)) *
                      (1 + (late ? imbalance * uniform(rank, step, 2) : 0));
    return rank == slow ? factor * ms : ms;
  }

  // `number`: of the reductions of this communicator in the step.
  void reduce(std::vector<double>& at, uint32_t from, uint32_t to, uint64_t comm, uint32_t step,
              comm::CommTrace& trace, uint32_t number = 0) const {
    const double end = *std::max_element(at.begin() + from, at.begin() + to) + 0.3;
    for (uint32_t rank = from; rank < to; ++rank) {
      CommRecord one;
      one.rank = rank, one.seq = step * kChatter + number, one.comm = comm, one.comm_size = to - from;
      one.op = CommOp::kAllReduce, one.step = step, one.bytes = 1 << 20;
      one.device = rank % 2;
      one.start_ns = static_cast<uint64_t>(at[rank] * 1e6);
      one.end_ns = static_cast<uint64_t>(end * 1e6);
      trace.add_records("node-" + std::to_string(rank / 2), {&one, 1});
      at[rank] = end;
    }
  }

  comm::TraceFindings answer() const {
    const JobFile job;
    comm::CommTrace trace(&job, false);
    std::vector<double> at(ranks(), 1000);
    for (uint32_t step = 0; step < kSteps; ++step) {
      for (uint32_t r = 0; r < ranks(); ++r)
        at[r] += work_ms(r, step, r >= replicas ? 100 : chatter ? 4 : 40);
      for (uint32_t n = 0; n < kChatter && chatter; ++n)
        for (uint32_t r = 0; r < replicas; r += 2) {
          for (const uint32_t one : {r, r + 1}) at[one] += 1.2 + 0.2 * uniform(one, step, 10 + n);
          reduce(at, r, r + 2, 10 + r, step, trace, n);
        }
      const double last = *std::max_element(at.begin() + replicas, at.end());
      for (uint32_t r = 0; r < replicas && waits != Waits::kNone; ++r) {
        const double entered = waits == Waits::kForAll ? last : at[r + replicas];
        at[r] = std::max(at[r], entered + 0.5 + 0.02 * uniform(r, step, 3));
      }
      reduce(at, 0, replicas, 1, step, trace);
      reduce(at, replicas, ranks(), 2, step, trace);
      for (uint32_t r = 0; r < ranks(); ++r) at[r] += work_ms(r, step, 20);
      reduce(at, 0, ranks(), 3, step, trace);
    }
    return comm::report_findings(trace);
  }
};
std::ostream& operator<<(std::ostream& out, const Program& p) { return out << p.name; }

const std::vector<Program> kPrograms = {
    {.name = "healthy, per replica"},
    {.name = "healthy, uneven work", .imbalance = 0.3},
    {.name = "slow rank of the stage that is waited for", .slow = 6, .accused = "node-3"},
    {.name = "the same with uneven work", .imbalance = 0.1, .slow = 6, .accused = "node-3"},
    {.name = "slow rank of the stage that waits", .slow = 1, .factor = 4, .accused = "node-0"},
    {.name = "slow rank, no hidden wait", .waits = Waits::kNone, .slow = 6, .accused = "node-3"},
    {.name = "two replicas, all wait", .replicas = 2, .waits = Waits::kForAll, .imbalance = 0.1},
    {.name = "slow rank while others reduce all the time",
     .replicas = 8,
     .waits = Waits::kNone,
     .chatter = true,
     .slow = 13,
     .accused = "node-6"},
    {.name = "the same, steps of different length",
     .replicas = 8,
     .waits = Waits::kNone,
     .chatter = true,
     .alike = 0.3,
     .slow = 13,
     .accused = "node-6"},
    {.name = "slow rank that is waited for, steps of different length",
     .alike = 0.3,
     .slow = 6,
     .accused = "node-3"},
    {.name = "all wait for a slow rank", .waits = Waits::kForAll, .slow = 6, .accused = "node-3"},
};

}  // namespace

BOOST_DATA_TEST_CASE(a_wait_that_no_record_shows_accuses_no_rank, boost::unit_test::data::make(kPrograms),
                     program) {
  const comm::TraceFindings answer = program.answer();
  std::string accused;
  for (const Finding& f : answer.findings) {
    BOOST_TEST_MESSAGE(program.name + ": " + f.title);
    for (const FindingSubject& subject : f.subjects)
      if (subject.host && f.kind == FindingKind::kFault)
        accused += (accused.empty() ? "" : " ") + *subject.host;
  }
  for (const auto& m : answer.missing) BOOST_TEST_MESSAGE(program.name + ": missing " + m);
  BOOST_TEST(accused == program.accused);
}
