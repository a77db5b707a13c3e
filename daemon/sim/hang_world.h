// Runs the ranks of a simulated job until no rank makes progress. The host of a rank issues calls
// asynchronously; its device executes them in order. A collective completes when the devices of all members
// have reached it. One thread; borrows the site and the programs, which must outlive the world.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "sim/hang_site.h"

namespace culprit::sim {

// Where the host of a rank is, for its stack.
enum class HangPlace : uint8_t {
  kLoader,
  kForward,
  kBackward,
  kSendForward,
  kRecvForward,
  kSendBackward,
  kRecvBackward,
  kGradReduce,
  kNorm,
  kParamGather,
  kSave,     // writes a file
  kBarrier,  // after a checkpoint or the preparation of data
  kEnd,      // barrier after the last step
  kLock,
  kGarbage,
  kTokenize,
  kExit  // interpreter ends after an exception
};

struct HangAct {
  enum class What : uint8_t { kCall, kSync, kHost };
  What what = What::kCall;
  HangGroup group = HangGroup::kWorld;
  HangOp op = HangOp::kAllReduce;
  HangPlace place = HangPlace::kForward;
  uint32_t part = 0;         // 0: the previous step; 1: the step or phase of the fault
  uint64_t in = 0, out = 0;  // elements
  bool with_next = false;    // of a send or receive: the peer is the next stage, else the previous one
  bool is_p2p() const { return what == What::kCall && (op == HangOp::kSend || op == HangOp::kRecv); }
};
using HangProgram = std::vector<HangAct>;

HangProgram hang_step(const HangSite& site, uint32_t stage, uint32_t part);
// Program of a host phase that all ranks execute, and the barrier after it.
HangProgram hang_barrier(HangPlace host, HangPlace barrier);

constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

// Deviations from a healthy run. Indexes refer to the rank's program.
struct HangDeviation {
  uint32_t rank = 0;
  uint32_t host_stops_at = kNever;     // does not run this act
  uint32_t device_stops_at = kNever;   // does not reach this call
  uint32_t device_sticks_at = kNever;  // peers complete this call, the rank does not
};
using HangCut = std::set<std::pair<HangGroup, uint32_t>>;  // groups whose calls of part 1 never complete

struct HangCall {
  uint32_t act = 0;                      // index in the rank's program
  uint32_t seq = 0;                      // per group; sends and receives count apart
  uint64_t created_ns = 0, done_ns = 0;  // 0: not completed
};

struct HangRank {
  const HangProgram* program = nullptr;
  std::vector<HangCall> calls;
  uint32_t at = 0;      // act that the host runs or waits in
  uint32_t device = 0;  // first call that is not completed
  uint64_t host_ns = 0, device_ns = 0;
  std::array<uint32_t, kHangGroups> enqueued{}, completed{};  // sequence numbers
  HangDeviation deviation;
  bool arrived = false;  // its device is at calls[device]

  const HangAct& act_of(const HangCall& call) const { return (*program)[call.act]; }
  bool waits() const { return device < calls.size(); }
};

class HangWorld {
 public:
  // `programs` by rank.
  HangWorld(const HangSite& site, const std::vector<const HangProgram*>& programs,
            const std::vector<HangDeviation>& deviations, HangCut cut);
  void run();

  const std::vector<HangRank>& ranks() const { return ranks_; }
  // Number of calls in all steps before the recorded ones, by group and, for collectives, by operation.
  uint32_t calls_before(uint32_t rank, HangGroup group) const;
  uint32_t launches_before(uint32_t rank, HangGroup group, HangOp op) const;

 private:
  struct Meeting {
    uint32_t count = 0;
    uint64_t latest = 0;
    const HangAct* first = nullptr;
    bool differs = false;
  };
  struct Channel {
    bool sender = false, receiver = false;
    uint64_t latest = 0;
  };
  void run_host(uint32_t rank);
  void run_device(uint32_t rank);
  void meet(uint32_t rank, const HangAct& act, uint64_t at);
  void transfer(uint32_t rank, const HangAct& act, uint64_t at);
  void complete(uint32_t rank, uint64_t end);
  uint64_t duration(const HangAct& act) const;
  Channel& channel(uint32_t sender, bool forward) { return channels_[2 * sender + (forward ? 0 : 1)]; }

  const HangSite& site_;
  const HangCut cut_;
  std::vector<HangProgram> steps_;  // by stage
  std::vector<HangRank> ranks_;
  std::array<std::vector<Meeting>, kHangGroups> meetings_;
  std::vector<Channel> channels_;
  std::vector<uint32_t> ready_;
};

}  // namespace culprit::sim
