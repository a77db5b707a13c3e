// Step summaries that a host sends instead of records: about thirty bytes per rank and step. A summary has
// the self time in each eighth of the step, measured by the host alone, and the total time of the longest
// streams. The collector has all hosts' sums and splits them into transfer and wait: the transfer is the
// smallest sum of a group. So no clocks of different hosts are compared.
//
// Plain values and pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/detect/comm/step.h"
#include "core/logs/packed.h"
#include "model/comm.h"

namespace culprit::comm {

// Eight phases separate a rank that is slow throughout the step from a rank that paused once.
constexpr size_t kPhases = 8;
// Streams per summary: tensor, data and expert groups, and pipelines in both directions.
constexpr size_t kStreamsReported = 8;
// Maximum number of streams of a rank.
constexpr size_t kStreams = 255;

// Packed records of the last steps, kept for requests: 2,000 steps of 8 ranks with 100 operations each.
constexpr size_t kRetainedBytes = 16 << 20;
// Limits per block of answers: a few steps of a host. A block has some megabytes.
constexpr size_t kAnswerBytes = 1 << 20, kAnswers = 64;

// Maximum number of stream tables per session: a host has a few dozen ranks, and each job restart changes
// their streams.
constexpr size_t kStreamsOfHost = 1 << 16;

// Maximum number of summaries and answering ranks per block: about thirty bytes each, the capacity of a
// block.
constexpr size_t kRanksReported = 1 << 18;

// Maximum number of records passed through unchanged between two drains: joins of a host's ranks, and open
// operations.
constexpr size_t kOpenRecords = 16'384;

// Operations of one kind of a rank in a group, or with one peer of the group.
struct Stream {
  uint64_t comm = 0;
  uint32_t comm_size = 0;
  uint32_t peer = kCommUnknown;
  CommOp op = CommOp::kJoin;
  CommGroup group = CommGroup::kUnknown;
  uint8_t size_class = 0;  // class of the bytes of one operation
  bool same_as(const Stream& o) const { return comm == o.comm && peer == o.peer && op == o.op; }
};

// Sent once; summaries refer to it by its number in the session.
struct RankStreams {
  uint32_t rank = 0, device = kCommUnknown;
  std::vector<Stream> streams;
};

struct StreamSum {
  uint32_t stream = 0, count = 0;
  float ms = 0;  // sum over its operations in the step, entry to exit
};

struct RankVector {
  uint32_t streams = 0;  // number of its RankStreams
  int64_t step = 0;
  int64_t begin_ns = 0;  // first entry
  float span_ms = 0;
  std::array<float, kPhases> self_ms{};  // NaN: unknown, because a record is missing
  uint32_t reported = 0;
  std::array<StreamSum, kStreamsReported> sums{};
};

// A rank's records of a step, for a request: nanosecond times, about ten bytes per record.
struct RankRecords {
  uint32_t streams = 0;  // number of its RankStreams
  std::string packed;
};
// A host's answer to a request. No ranks: the host already dropped the step's records.
struct StepRecords {
  int64_t step = 0;
  std::vector<RankRecords> ranks;
};

// One transmission of a host.
struct HostVectors {
  std::vector<RankStreams> streams;  // new ones; their numbers continue the session's
  std::vector<RankVector> vectors;
  std::vector<StepRecords> answers;
  // Records outside any step: group members, and positions of idle ranks. A position is an open operation
  // (end 0) or the last completed one.
  std::vector<CommRecord> open_records;
  bool empty() const { return vectors.empty() && open_records.empty() && answers.empty(); }
  // Number of summaries and of ranks in answers.
  size_t ranks() const {
    size_t n = vectors.size();
    for (const StepRecords& answer : answers) n += 1 + answer.ranks.size();
    return n;
  }
};

uint8_t size_class(uint64_t bytes);
uint64_t bytes_of_class(uint8_t size_class);

// Packs numbers at variable length (core/logs/packed.h). Times have a precision of 0.1 % and are stored as
// differences from the rank's previous step: mostly one byte. A block needs no other block.
void pack(const HostVectors& reported, PackedWriter& out);
// False if the bytes are malformed. `known`: number of RankStreams sent before in the session.
bool unpack(PackedReader& in, size_t known, HostVectors& out);

// A rank's records of a step, and its own work before the first record.
struct OwnRecords {
  std::vector<CommRecord> records;
  int64_t before_ns = -1;  // negative: unknown
};
// False if the bytes are malformed. `streams`: table for the stream numbers in the packed records.
bool unpack(const RankRecords& packed, const RankStreams& streams, int64_t step, OwnRecords& out);

// A stream of a summary on the collector, mapped to a slot of the cluster.
struct VectorSide {
  uint32_t slot = 0, count = 0;
  CommOp op = CommOp::kJoin;
  uint8_t size_class = 0;
  float ms = 0;  // NaN: not reported
};
struct RankSides {
  uint32_t rank = 0;  // index
  int64_t begin_ns = 0;
  float span_ms = 0;
  std::array<float, kPhases> self_ms{};
  uint32_t first = 0, count = 0;  // range of its sides
};

// Builds a step from summaries, for the same comparison as a step of records. A rank's phases become places,
// and each stream becomes one operation of all its members. `step` must be empty.
void vector_step(Cluster& cluster, std::vector<RankSides> ranks, const std::vector<VectorSide>& sides,
                 Step& step);
// Call after the comparison of roles and the measurement of the network. Summaries have no critical path, so
// this estimates how long others waited for each rank. Returns `on_path` like walk_path().
std::vector<double> estimate_path(const Cluster& cluster, Step& step);

// The host's side: numbers the streams of its ranks in order of appearance.
class StepSummarizer {
 public:
  // `step` has only this host's records, and measure_gaps() ran on it.
  void add(const Cluster& cluster, const Step& step);
  // Passes a record through unchanged, up to kOpenRecords.
  void pass(const CommRecord& record) {
    if (reported_.open_records.size() < kOpenRecords)
      reported_.open_records.push_back(record);
    else
      ++dropped_;
  }
  // Adds the records of these steps to the next drain(), if still retained (the last minutes).
  void answer(const std::vector<int64_t>& steps);
  uint64_t dropped() const { return dropped_; }
  bool empty() const { return reported_.empty(); }
  size_t size() const { return reported_.vectors.size(); }
  HostVectors drain();

 private:
  struct RankTable {
    RankStreams streams;
    uint32_t number = 0;
    bool changed = true;
  };
  struct RetainedStep {
    int64_t number = 0;
    std::vector<std::pair<uint32_t, std::string>> ranks;  // index, records
    size_t bytes = 0;
  };
  bool add_rank(const Cluster& cluster, const Step& step, uint32_t i);
  std::string pack_rank(const Cluster& cluster, const Step& step, uint32_t i);
  void keep(RetainedStep step);
  void add_streams(const Cluster& cluster, const Step& step, uint32_t i, RankVector& out);
  static uint32_t stream_of(RankTable& known, const Cluster& cluster, const Slot& slot, const Op& op);

  std::vector<RankTable> ranks_;  // by index
  uint32_t next_ = 0;
  HostVectors reported_;
  std::deque<RetainedStep> retained_;
  size_t retained_bytes_ = 0, answer_bytes_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace culprit::comm
