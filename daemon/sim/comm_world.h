// Runs the ranks of a simulated job, phase by phase. Each rank continues until it waits for others; the
// last rank to arrive releases all. The duration of an operation does not depend on its start, so the order
// of processing ranks has no effect. One thread; borrows the site, which must outlive the world.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/comm_program.h"
#include "sim/comm_site.h"

namespace culprit::sim {

// Deviations from normal in one step. Factors in units; an empty list: all factors are one.
struct CommEffects {
  struct Pause {
    uint32_t rank = 0;
    uint64_t place = 0;  // index of the rank's action, modulo the number of actions
    uint64_t ns = 0;
  };
  struct Stop {
    uint32_t rank = 0, action = 0;
    bool device = false;  // true: the rank enters and never leaves; false: it never enters
  };
  std::vector<int64_t> compute, host;  // by rank
  std::vector<int64_t> channel;        // by 2 x sender; + 1: to the previous stage
  std::array<std::vector<int64_t>, kCommGroups> group;
  std::vector<Pause> pauses;
  std::vector<Stop> stops;
};

struct CommPhase {
  uint32_t step = 0;                      // from 0
  uint32_t part = 0;                      // of the step: training, evaluation, checkpoint
  std::span<const CommProgram> programs;  // by stage
};

class CommWorld {
 public:
  CommWorld(const CommSite& site, bool keep_records);

  // Returns the time when the last rank ends, on a clock common to all ranks.
  uint64_t run(const CommPhase& phase, const CommEffects& effects);
  // Records of the last phase, in order of entry; in a hang the end is 0.
  std::span<const CommRecord> records(uint32_t rank) const;
  bool stuck() const { return stuck_; }

 private:
  struct Issue {
    uint64_t at = 0;
    uint32_t action = 0;
  };
  struct Rank {
    uint64_t at = 0, stream = 0, until = 0;
    uint64_t pause_ns = 0;
    uint32_t pause_at = 0, next = 0, done = 0, taken = 0, awaiting = 0, parts = 0;
    uint32_t records = 0, first_of_batch = 0;
    std::array<uint32_t, 2> pending{};  // records of current operations, by stream
    uint32_t stop_at = 0xffffffff;
    bool stop_device = false, busy = false;
    std::array<uint64_t, kCommGroups> seq{};
    std::array<uint64_t, 4> parts_seq{};  // of sends and receives, indexed by the bits of CommAct::parts
    std::vector<Issue> issues;
  };
  struct Group {
    uint32_t arrived = 0;
    uint64_t latest = 0;
    // Of a broadcast: the root does not wait and may leave before the others arrive.
    uint64_t root_end = 0;
    std::vector<uint32_t> waiting;
  };
  struct Send {
    uint64_t at = 0;
    uint32_t record = 0;
    bool waits = false;
  };
  struct Channel {
    std::vector<Send> sends;
    uint32_t head = 0, recv_record = 0;
    uint64_t recv_at = 0;
    bool waiting = false;
  };

  void prepare(const CommPhase& phase, const CommEffects& effects);
  void advance(uint32_t rank);
  bool act(uint32_t rank, uint32_t index);
  uint64_t compute_ns(uint32_t rank, uint32_t index) const;
  void enter(uint32_t rank, uint32_t index, uint64_t at);
  void complete(CommGroup kind, uint32_t number, const CommAct& act);
  void leave(uint32_t rank, uint64_t end, bool stream);
  void start_stream(uint32_t rank);
  bool broadcast(uint32_t rank, const CommAct& act);
  bool transfer(uint32_t rank, const CommAct& act);
  void match(uint32_t channel);
  void part_done(uint32_t rank, uint64_t end);
  uint64_t collective_ns(const CommAct& act, uint32_t number, uint64_t key) const;
  uint64_t transfer_ns(uint32_t channel) const;
  uint32_t record(uint32_t rank, const CommAct& act, uint64_t at);
  CommRecord* at(uint32_t rank, uint32_t record) {
    return keep_ ? &records_[first_record_[rank] + record] : nullptr;
  }
  void end(uint32_t rank, uint32_t record, uint64_t end_ns) {
    if (CommRecord* one = at(rank, record)) one->end_ns = end_ns;
  }

  const CommSite& site_;
  const bool keep_;
  CommPhase phase_;
  const CommEffects* effects_ = nullptr;
  bool stuck_ = false;
  std::vector<Rank> ranks_;
  std::array<std::vector<Group>, kCommGroups> groups_;
  std::vector<Channel> channels_;
  std::vector<uint32_t> ready_;
  std::vector<int64_t> lottery_, sample_;  // by rank; by sample and micro-batch
  std::vector<size_t> first_record_;
  std::vector<CommRecord> records_;
};

}  // namespace culprit::sim
