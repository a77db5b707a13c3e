// What a host tells of its ranks' steps in place of their records: of each rank and step some thirty bytes.
// Its self time, which needs no other host to be measured, by eighths of the step; and what the streams of
// operations that took most of it took in all, from which whoever knows all hosts reads transfer and wait
// (the least of a group's sums is the transfer). So no clock is compared with another host's.
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

// As many as tell a rank that is slow in all that it does from one that stopped once.
constexpr size_t kPhases = 8;
// Streams whose sums are told: tensor, data and expert groups, and pipelines there and back.
constexpr size_t kStreamsTold = 8;
// Streams of one rank, at most.
constexpr size_t kStreams = 255;

// Packed records of the last steps, kept for whoever asks: of 8 ranks with 100 operations a step 2,000 steps.
constexpr size_t kKeptBytes = 16 << 20;
// That are told at a time: a few steps of a host, where a block has some megabytes.
constexpr size_t kAnswerBytes = 1 << 20, kAnswers = 64;

// Ranks with streams of a session: a host has some dozens, whose streams change when its job is started anew.
constexpr size_t kStreamsOfHost = 1 << 16;

// Vectors of a block, and ranks of answers: of some thirty bytes each as many as a block holds.
constexpr size_t kRanksTold = 1 << 18;

// Records that go on as they are between two takes: joins of a host's ranks, and what stands.
constexpr size_t kStanding = 16'384;

// Operations of one kind that a rank does in a group, or with a peer of it.
struct Stream {
  uint64_t comm = 0;
  uint32_t comm_size = 0;
  uint32_t peer = kCommUnknown;
  CommOp op = CommOp::kJoin;
  CommGroup group = CommGroup::kUnknown;
  uint8_t size_class = 0;  // of one operation's bytes
  bool same_as(const Stream& o) const { return comm == o.comm && peer == o.peer && op == o.op; }
};

// Told once: vectors name it by its number in the session.
struct RankStreams {
  uint32_t rank = 0, device = kCommUnknown;
  std::vector<Stream> streams;
};

struct StreamSum {
  uint32_t stream = 0, count = 0;
  float ms = 0;  // from entry to exit, of all its operations in the step
};

struct RankVector {
  uint32_t streams = 0;  // number of its RankStreams
  int64_t step = 0;
  int64_t begin_ns = 0;  // of its first entry
  float span_ms = 0;
  std::array<float, kPhases> self_ms{};  // NaN: not known, a record is missing there
  uint32_t told = 0;
  std::array<StreamSum, kStreamsTold> sums{};
};

// A rank's records of a step, as asked for: times to the nanosecond, some ten bytes each.
struct RankRecords {
  uint32_t streams = 0;  // number of its RankStreams
  std::string packed;
};
// The answer of a host; no ranks: it has them no more.
struct StepRecords {
  int64_t step = 0;
  std::vector<RankRecords> ranks;
};

// What a host tells at a time.
struct HostVectors {
  std::vector<RankStreams> streams;  // new ones, numbered behind those before
  std::vector<RankVector> vectors;
  std::vector<StepRecords> answers;
  // Who is in which group, and where ranks stand when nothing goes on: operations that were entered and not
  // left (end 0), and the last that were left. No part of any step.
  std::vector<CommRecord> standing;
  bool empty() const { return vectors.empty() && standing.empty() && answers.empty(); }
  // Vectors, and ranks of answers.
  size_t ranks() const {
    size_t n = vectors.size();
    for (const StepRecords& answer : answers) n += 1 + answer.ranks.size();
    return n;
  }
};

uint8_t size_class(uint64_t bytes);
uint64_t bytes_of_class(uint8_t size_class);

// Numbers as short as they are (core/logs/packed.h); times to 0.1 %, and of each rank as what they differ by
// from those of its step before: most take a byte. A block stands alone.
void pack(const HostVectors& told, PackedWriter& out);
// False where the bytes break the format. `known`: RankStreams told before in the session.
bool unpack(PackedReader& in, size_t known, HostVectors& out);

// A rank's records of a step, and what it did of its own before the first of them.
struct OwnRecords {
  std::vector<CommRecord> records;
  int64_t before_ns = -1;  // negative: not known
};
// False where the bytes break the format. `streams`: what the packed records name by number.
bool unpack(const RankRecords& packed, const RankStreams& streams, int64_t step, OwnRecords& out);

// A rank's vector at whoever knows all hosts, its streams by slots of the cluster.
struct VectorSide {
  uint32_t slot = 0, count = 0;
  CommOp op = CommOp::kJoin;
  uint8_t size_class = 0;
  float ms = 0;  // NaN: not told
};
struct RankSides {
  uint32_t rank = 0;  // index
  int64_t begin_ns = 0;
  float span_ms = 0;
  std::array<float, kPhases> self_ms{};
  uint32_t first = 0, count = 0;  // of its sides
};

// A step as vectors tell it, to be compared as one of records is: the phases of a rank are places of its
// step, each stream is one operation of all ranks that are in it.
Step vector_step(Cluster& cluster, int64_t number, std::vector<RankSides> ranks,
                 const std::vector<VectorSide>& sides);
// When its roles are compared and its network is measured: what ranks were waited for, in place of the path.
// Gives what on_path walk_path() gives.
std::vector<double> estimate_path(const Cluster& cluster, Step& step);

// A host's side of it: streams of its ranks are numbered as they appear.
class Condenser {
 public:
  // `step` is built of this host's records, and its gaps are measured.
  void add(const Cluster& cluster, const Step& step);
  // Goes on as it is, as long as there is room.
  void pass(const CommRecord& record) {
    if (told_.standing.size() < kStanding)
      told_.standing.push_back(record);
    else
      ++dropped_;
  }
  // The records of these steps go with what is taken next, as far as they are kept: of the last minutes.
  void answer(const std::vector<int64_t>& steps);
  uint64_t dropped() const { return dropped_; }
  bool empty() const { return told_.empty(); }
  size_t size() const { return told_.vectors.size(); }
  HostVectors take();

 private:
  struct Known {
    RankStreams streams;
    uint32_t number = 0;
    bool changed = true;
  };
  struct KeptStep {
    int64_t number = 0;
    std::vector<std::pair<uint32_t, std::string>> ranks;  // index, records
    size_t bytes = 0;
  };
  bool add_rank(const Cluster& cluster, const Step& step, uint32_t i);
  std::string pack_rank(const Cluster& cluster, const Step& step, uint32_t i);
  void keep(KeptStep step);
  void add_streams(const Cluster& cluster, const Step& step, uint32_t i, RankVector& out);
  static uint32_t stream_of(Known& known, const Cluster& cluster, const Slot& slot, const Op& op);

  std::vector<Known> ranks_;  // by index
  uint32_t next_ = 0;
  HostVectors told_;
  std::deque<KeptStep> kept_;
  size_t kept_bytes_ = 0, answer_bytes_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace culprit::comm
