// Steps without numbers: their beginnings, for any content between them.
#include "core/detect/comm/steps.h"

#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string>

using namespace culprit;

namespace {

constexpr uint64_t kWorld = 1, kTensor = 2;
constexpr uint32_t kRanks = 4;

struct Phases {
  std::string name;
  uint32_t checkpoint_every = 0, evaluation_every = 0;  // steps; 0: never
  uint32_t lost_every = 0;                              // records; 0: none is lost
  uint32_t batch = 0;                                   // steps that are numbered together; 0: all
};
std::ostream& operator<<(std::ostream& out, const Phases& p) { return out << p.name; }

// Ranks with steps of layers within a pair, and two sums over all. Each record has the number of its step.
class Job {
 public:
  explicit Job(const Phases& phases) : p_(phases) {}

  std::vector<CommRecord> step(uint32_t number) {
    out_.clear();
    layers(number, 40);
    all(number, CommOp::kAllReduce);  // of the gradients
    all(number, CommOp::kAllReduce);  // of the loss
    const auto due = [number](uint32_t every) { return every != 0 && (number + 1) % every == 0; };
    if (due(p_.checkpoint_every)) all(number, CommOp::kBarrier);
    if (due(p_.evaluation_every)) {
      layers(number, 20);
      all(number, CommOp::kAllReduce);
    }
    return std::move(out_);
  }

 private:
  void layers(uint32_t number, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      for (uint32_t r = 0; r < kRanks; ++r) add(number, r, kTensor + r / 2, tensor_seq_, CommOp::kAllReduce);
      ++tensor_seq_;
    }
  }
  void all(uint32_t number, CommOp op) {
    for (uint32_t r = 0; r < kRanks; ++r) add(number, r, kWorld, world_seq_, op);
    ++world_seq_;
  }
  void add(uint32_t number, uint32_t rank, uint64_t comm, uint64_t seq, CommOp op) {
    now_ += 1000;
    if (p_.lost_every != 0 && ++written_ % p_.lost_every == 0) return;
    CommRecord r;
    r.start_ns = now_;
    r.end_ns = now_ + 500;
    r.comm = comm;
    r.seq = seq;
    r.rank = rank;
    r.step = number;
    r.comm_size = comm == kWorld ? kRanks : 2;
    r.op = op;
    out_.push_back(r);
  }

  const Phases p_;
  std::vector<CommRecord> out_;
  uint64_t now_ = 0, world_seq_ = 0, tensor_seq_ = 0;
  uint32_t written_ = 0;
};

std::vector<Phases> phases() {
  return {
      {"nothing between"},
      {"checkpoints", 4},
      {"checkpoints of each second step", 2},
      {"evaluations", 0, 4},
      {"both", 4, 5},
      {"both, and lost records", 4, 5, 97},
      {"both, as they come", 4, 5, 0, 8},
      {"both, as they come, and lost records", 4, 5, 97, 8},
  };
}

}  // namespace

BOOST_DATA_TEST_CASE(what_comes_between_steps_shifts_none, boost::unit_test::data::make(phases()), c) {
  constexpr uint32_t kSteps = 48;
  Job job(c);
  comm::StepCount count;
  size_t wrong = 0, all = 0;
  std::vector<CommRecord> batch;
  for (uint32_t s = 0; s < kSteps; ++s) {
    const auto step = job.step(s);
    batch.insert(batch.end(), step.begin(), step.end());
    if (s + 1 < kSteps && (c.batch == 0 || (s + 1) % c.batch != 0)) continue;
    const std::vector<CommRecord> truth = batch;
    for (CommRecord& r : batch) r.step = kCommUnknown;
    BOOST_TEST(comm::find_steps(batch, count) == 0u);
    for (size_t i = 0; i < batch.size(); ++i) wrong += batch[i].step != truth[i].step;
    all += batch.size();
    batch.clear();
  }
  // If the last record of an evaluation is lost, the evaluation belongs to the next step.
  BOOST_TEST(wrong <= (c.lost_every != 0 ? all / 200 : 0));
}

// Micro-batches that each end with an operation of all ranks: no micro-batch is a whole step.
BOOST_AUTO_TEST_CASE(blocks_that_only_together_hold_all_kinds_are_one_step) {
  std::vector<CommRecord> records;
  uint64_t seq = 0;
  for (uint32_t s = 0; s < 10; ++s)
    for (uint32_t part = 0; part < 4; ++part, ++seq)
      for (uint32_t i = 0; i < 5; ++i) {
        CommRecord r;
        r.start_ns = 1000 * (records.size() + 1);
        r.end_ns = r.start_ns + 500;
        r.comm = i == 4 ? kWorld : kTensor + (part == 3 ? 1 : 0);
        r.seq = i == 4 ? seq : seq * 4 + i;
        r.step = kCommUnknown;
        r.comm_size = i == 4 ? 8 : 2;
        r.op = CommOp::kAllReduce;
        records.push_back(r);
      }
  comm::StepCount count;
  BOOST_TEST(comm::find_steps(records, count) == 0u);
  for (size_t i = 0; i < records.size(); ++i) BOOST_TEST(records[i].step == i / 20);
}
