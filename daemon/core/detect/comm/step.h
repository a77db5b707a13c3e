// One step of a job with its records: times of all operations, and values derived from them. Built from the
// step's raw records, analysed, and dropped; StepResult remains. Times are nanoseconds on the clocks of the
// hosts that wrote them. Plain values; one thread; pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/huge_pages.h"
#include "core/detect/comm/cluster.h"
#include "core/detect/comm/result.h"

namespace culprit::comm {

// Timestamps closer than this were taken together.
constexpr int64_t kTogetherNs = 2000;
// Precision of launches and timestamps. An operation that begins within this time after another of its kind
// was queued behind it. An operation that begins within this time before another's end followed it.
constexpr int64_t kQueuedNs = 50'000;
// Milliseconds: ranks that enter within this time entered together. Clock alignment and timestamp overhead
// set the limit.
constexpr double kTogetherMs = 0.05;

// Fields of a record that the analysis needs, with its rank and stream resolved to indices.
struct SortedRecord {
  int64_t start = 0, end = 0;  // end: 0 while unfinished
  uint64_t seq = 0, bytes = 0;
  uint32_t rank = 0;  // index
  uint16_t slot = 0;  // of the rank
  CommOp op = CommOp::kJoin;

  SortedRecord() = default;
  SortedRecord(uint32_t rank_index, uint32_t rank_slot, const CommRecord& r)
      : start(static_cast<int64_t>(r.start_ns)),
        end(static_cast<int64_t>(r.end_ns)),
        seq(r.seq),
        bytes(r.bytes),
        rank(rank_index),
        slot(static_cast<uint16_t>(rank_slot)),
        op(r.op) {}
};
static_assert(kRankSlots <= UINT16_MAX && sizeof(SortedRecord) == 40);

// A growing list that never moves its records; short lists need little memory.
template <class Record>
class RecordList {
 public:
  void add(const Record& record) {
    if (blocks_.empty() || blocks_.back().size() == blocks_.back().capacity()) {
      blocks_.emplace_back();
      blocks_.back().reserve(std::clamp<size_t>(size_, 1, 1 << 14));
    }
    blocks_.back().push_back(record);
    ++size_;
  }
  void add(std::vector<Record> records) {
    size_ += records.size();
    blocks_.push_back(std::move(records));
  }
  size_t size() const { return size_; }
  template <class Take>
  void for_each(Take take) const {
    for (const auto& block : blocks_)
      for (const Record& record : block) take(record);
  }

 private:
  std::vector<std::vector<Record>> blocks_;
  size_t size_ = 0;
};
using SortedRecords = RecordList<SortedRecord>;

// One rank's side of an operation. It fills one cache line, because the analysis is bound by memory latency.
struct alignas(64) Op {
  int64_t start = 0, end = 0;  // end: equals start if unfinished
  uint64_t seq = 0;
  uint64_t bytes = 0;
  uint32_t instance = kNone;
  // The operation that precedes the rank's own work before this one. Either it ended, or it runs in the
  // background and the rank does not wait for it.
  uint32_t before = kNone;
  // background operation that ended during the gap; the rank may have waited for it
  uint32_t awaited = kNone;
  uint32_t launch = kNone;      // first operation of its launch; operations of a launch run one after another
  uint32_t waited_for = kNone;  // operation of another rank whose entry ended this gap (HiddenWaits)
  float gap_ms = 0;             // own work before it; NaN: unknown
  float excess_ms = 0;          // gap beyond its peers; NaN: not comparable
  uint16_t slot = 0;
  CommOp op : 8 = CommOp::kJoin;
  bool finished : 1 = true;
  bool background : 1 = false;  // the rank continues while it runs
  bool fused : 1 = false;       // shares its timestamps with its neighbour: launched as one
  bool alone : 1 = false;       // a send that ended before its receiver entered, so the sender did not wait
};
static_assert(sizeof(Op) == 64);

// All sides of one operation.
struct Instance {
  uint32_t first = 0, count = 0;            // range in Step::sides
  uint32_t channel = kNone, local = kNone;  // index in the cluster; index in Step::channels
  uint32_t kind = kNone;                    // index in Step::kinds; set if the transfer is known
  CommOp op = CommOp::kJoin;
  bool complete = false;         // every known member took part and finished
  bool differs = false;          // the sides differ in operation or bytes
  uint64_t bytes = 0;            // maximum over the sides
  int64_t least_ns = INT64_MAX;  // shortest side
  double transfer_ms = 0;        // duration once all members had entered; negative: unknown
  double usual_ms = 0;           // usual duration of its kind
  double slower_ms = 0;          // transfer_ms beyond usual_ms
};

// Operations with equal durations on a healthy network: same kind of group, operation and size.
struct TransferKind {
  uint64_t key = 0;
  float here = 0;  // ms: median in this step
  float usual = 0;
};

// The object is reused for successive steps and retains its memory. Only the used entries of job-sized tables
// are reset, so the cost depends on the step alone.
struct Step {
  int64_t number = 0;
  std::vector<uint32_t> ranks;  // indices, ascending by rank
  std::vector<uint32_t> begin;  // operations of ranks[i] are ops[begin[i]] to ops[begin[i + 1]] (exclusive)
  LargeTable<Op> ops;           // by rank, then by start
  LargeTable<uint32_t> owner;   // by op: index into ranks
  LargeTable<Instance> instances;
  LargeTable<uint32_t> sides;      // ops, by instance
  std::vector<uint32_t> channels;  // with operations in this step
  std::vector<uint64_t> base;      // by Instance::local: first seq in this step
  std::vector<TransferKind> kinds;
  // By index into ranks: offset that converts a time to the first host's clock.
  std::vector<int64_t> clock_ns;
  uint64_t duplicates = 0;
  StepResult result;

  // From find_background() to fill_gaps(). By index into ranks: last end of an operation; start of the gap
  // before the first operation, negative if unknown; whether the end of the rank's step is unknown.
  std::vector<int64_t> ended, began;
  std::vector<bool> cut_off;
  std::vector<uint32_t> side_kinds;  // by op: kind of its side
  std::vector<bool> in_background;   // by kind; empty: none is
  std::vector<uint32_t> last;        // by Instance::local: the instance with the highest number
  std::vector<uint32_t> longest;     // ops with the longest gaps beyond their peers (HiddenWaits)

  std::vector<uint32_t> rank_at, channel_at;  // by index in the cluster: index in this step, or kNone

  // Prefetches the operation some places after `sides[at]`: sides of an operation lie far apart in `ops`.
  void prefetch_side(size_t at) const {
    constexpr size_t kAhead = 16;
    if (at + kAhead < sides.size()) __builtin_prefetch(&ops[sides[at + kAhead]]);
  }
  int64_t aligned(uint32_t op, int64_t time) const { return time + clock_ns[owner[op]]; }
  // Index into `channels` of a channel of the cluster; kNone: not in this step.
  uint32_t local(uint32_t channel) const { return channel < channel_at.size() ? channel_at[channel] : kNone; }
};

// Kind of a side of an operation, independent of the rank: kind of the group, operation, and direction of a
// send.
uint64_t side_kind(const Cluster& cluster, uint32_t rank, const Op& op);

// Groups and matches operations. `records`: in any order of ranks; the cluster is settled. Any thread, while
// no thread adds to the cluster.
void build_step(const Cluster& cluster, int64_t number, const SortedRecords& records, Step& step);
// Empties a step and keeps its memory.
void clear_step(const Cluster& cluster, int64_t number, Step& step);

// The parts of the analysis, in this order. follow_ranks() needs steps in order, because gaps start at the
// ranks' last exits. The other parts may run for several steps in parallel.
void find_background(const Cluster& cluster, Step& step);
void follow_ranks(Cluster& cluster, Step& step);
void fill_gaps(Step& step);
inline void measure_gaps(Cluster& cluster, Step& step) {
  find_background(cluster, step);
  follow_ranks(cluster, step);
  fill_gaps(step);
}
void align_clocks(const Cluster& cluster, Step& step);
void compare_peers(const Cluster& cluster, Step& step);

// Call after the path is known. Sets RankStep::path and NetEffect::cost of the main contributors to the time
// that their removal would save. Waiting that other ranks would then cause is not a saving.
void replay_costs(const Cluster& cluster, Step& step);

}  // namespace culprit::comm
