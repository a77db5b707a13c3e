// One step of a job, with its records: who was in which operation when, and what can be read off it. Built
// from the raw records of the step, analysed, and dropped; StepResult is what stays. Times are nanoseconds of
// the clocks of the hosts that wrote them. Plain values, one thread, pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/detect/comm/cluster.h"
#include "core/detect/comm/result.h"

namespace culprit::comm {

// Stamps that lie nearer to one another were taken together.
constexpr int64_t kTogetherNs = 2000;
// An operation that begins so soon after another of its kind stood in a queue behind it, and one that begins
// so shortly before another ends followed it: launches and stamps are no finer.
constexpr int64_t kQueuedNs = 50'000;
// Milliseconds: who came this much later came together. Clocks of hosts are aligned no better, and stamps
// cost some of it.
constexpr double kTogetherMs = 0.05;

// A rank's side of an operation.
struct Op {
  int64_t start = 0, end = 0;  // end: start where it is unfinished
  uint64_t seq = 0;
  uint64_t bytes = 0;
  uint32_t slot = 0;
  uint32_t instance = kNone;
  // After what the rank's own work before it began: an operation that ended, or that was begun in the
  // background and that nobody waits for.
  uint32_t before = kNone;
  uint32_t awaited = kNone;     // one in the background that ended since: perhaps it was waited for
  uint32_t launch = kNone;      // the first of those it was launched with, which stand behind one another
  uint32_t waited_for = kNone;  // another rank's: its excess waited for that entry (HiddenWaits)
  float gap_ms = 0;             // of its own, before it; NaN: not known
  float excess_ms = 0;          // of that, beyond its peers; NaN: not comparable
  CommOp op = CommOp::kJoin;
  bool finished = true;
  bool background = false;  // the rank goes on while it runs
  bool fused = false;       // shares its stamps with its neighbour: launched as one
  bool alone = false;       // a send that had left before its receiver came: it did not wait
};

// All sides of an operation.
struct Instance {
  uint32_t first = 0, count = 0;            // in Step::sides
  uint32_t channel = kNone, local = kNone;  // in the cluster, in Step::channels
  uint32_t kind = kNone;                    // in Step::kinds; of those whose transfer is known
  CommOp op = CommOp::kJoin;
  bool complete = false;   // every member known of is there, and has finished
  double transfer_ms = 0;  // what it took when all were there; negative: not known
  double usual_ms = 0;     // what its like take
  double slower_ms = 0;    // beyond that
};

// Operations that take the same where all is well: of one kind of group, operation and size.
struct TransferKind {
  uint64_t key = 0;
  float here = 0;  // ms: their median in this step
  float usual = 0;
};

// One object serves step after step: it keeps its memory, and what is as large as the job is undone entry by
// entry, so that a step costs what is in it.
struct Step {
  int64_t number = 0;
  std::vector<uint32_t> ranks;  // indices, ascending by rank
  std::vector<uint32_t> begin;  // ops of ranks[i]: [begin[i], begin[i + 1])
  std::vector<Op> ops;          // of each rank by start
  std::vector<uint32_t> owner;  // by op: index into ranks
  std::vector<Instance> instances;
  std::vector<uint32_t> sides;     // ops, by instance
  std::vector<uint32_t> channels;  // that have operations here
  std::vector<uint64_t> base;      // by Instance::local: the first seq in this step
  std::vector<TransferKind> kinds;
  std::vector<int64_t> clock_ns;  // by index into ranks: add it to a time to have that of the first host
  uint64_t duplicates = 0;
  StepResult result;

  std::vector<uint32_t> rank_at, channel_at;  // by index in the cluster: where it stands here; kNone

  int64_t aligned(uint32_t op, int64_t time) const { return time + clock_ns[owner[op]]; }
  // Of a channel of the cluster: where it stands in `channels`; kNone.
  uint32_t local(uint32_t channel) const { return channel < channel_at.size() ? channel_at[channel] : kNone; }
};

// What a side of an operation is, whoever's it is: the kind of its group, the operation, and the direction of
// a send.
uint64_t side_kind(const Cluster& cluster, uint32_t rank, const Op& op);

// Groups and matches. `records` in any order, all of them known to the cluster, which is settled. Any thread,
// while nothing is added to the cluster.
void build_step(const Cluster& cluster, int64_t number, std::span<const CommRecord* const> records,
                Step& step);

// The parts of the analysis, in this order. Gaps are measured of one step after another: they go on from the
// ranks' last exits. The others may be done for several steps at a time.
void measure_gaps(Cluster& cluster, Step& step);
void align_clocks(const Cluster& cluster, Step& step);
void compare_roles(const Cluster& cluster, Step& step);

// What is left out of a step when it is run again.
struct Excess {
  uint32_t host = kNone;       // what its ranks that are in excess take beyond their peers
  std::vector<bool> channels;  // by Instance::local: what operations of these take beyond their like
};
// After the path is known: RankStep::path and NetEffect::cost of those who matter become what the step would
// be shorter by without them. What others would then be waited for is no longer counted as theirs.
void replay_costs(const Cluster& cluster, Step& step);

}  // namespace culprit::comm
