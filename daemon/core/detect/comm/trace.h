// Records of communication, taken as they come: sorted into steps, a step analysed once it is over, and its
// records dropped. Vectors that hosts tell in their place come in beside them; or a step that is over is
// condensed into such vectors, where others judge. Files and rings come in by the same way; what is kept
// grows with ranks and steps, never with records. Steps whose number is not told are found by what repeats.
// Pure; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/detect/comm/cluster.h"
#include "core/detect/comm/hang.h"
#include "core/detect/comm/network.h"
#include "core/detect/comm/result.h"
#include "core/detect/comm/vectors.h"
#include "model/comm.h"
#include "model/report.h"

namespace culprit::comm {

// Records that grow without being moved.
class RecordList {
 public:
  void add(const CommRecord& record) {
    if (size_ == blocks_.size() * kBlock) blocks_.push_back(std::make_unique_for_overwrite<Block>());
    (*blocks_[size_ / kBlock]).records[size_ % kBlock] = record;
    ++size_;
  }
  size_t size() const { return size_; }
  const CommRecord& operator[](size_t i) const { return blocks_[i / kBlock]->records[i % kBlock]; }

 private:
  static constexpr size_t kBlock = 1024;
  struct Block {
    CommRecord records[kBlock];
    Block() {}  // not filled with zeros
  };
  std::vector<std::unique_ptr<Block>> blocks_;
  size_t size_ = 0;
};

class CommTrace {
 public:
  // `job` is borrowed. `live`: a step is closed when all ranks have gone beyond it; otherwise when the report
  // is asked for, or memory is short.
  CommTrace(const JobFile* job, bool live) : cluster_(job), live_(live) {}

  // `host` wrote them; empty: not known.
  void take(const std::string& host, std::span<const CommRecord> records);

  // What another host tells of its ranks. `streams`: all that were told in its session.
  void take_vectors(const std::string& host, const HostVectors& told,
                    const std::vector<RankStreams>& streams);
  // From now on what is over goes there, and nothing is judged.
  void condense_into(Condenser* condenser) { condenser_ = condenser; }
  // Where all ranks stand: what they entered and did not leave, and of each stream the last that they left.
  std::vector<CommRecord> standing();
  bool waits() const { return !open_.empty(); }  // somebody is inside of an operation, for all that is known

  bool empty() const { return taken_ == 0; }
  // Analyses what is held, except in a live job's steps that go on.
  void settle();

  const Cluster& cluster() const { return cluster_; }
  const std::deque<StepResult>& steps() const { return steps_; }
  // Operations that had not ended when the records did.
  std::optional<Stuck> stuck();
  // What was dropped, and why: a sentence each.
  std::vector<std::string> told_drops() const;
  uint64_t records() const { return taken_; }
  int64_t first_ns() const { return first_ns_; }
  int64_t last_ns() const { return last_ns_; }

 private:
  struct Held {
    RecordList records;
    std::vector<RankSides> ranks;  // as vectors tell them
    std::vector<VectorSide> sides;
    uint32_t ranks_in = 0;  // whose latest step it is
    int64_t last_ns = 0;    // of its records
  };

  void keep(uint32_t host, const CommRecord& record);
  void hold(uint32_t rank, const CommRecord& record);
  void note_progress(uint32_t rank, int64_t step);
  void close_ready();
  size_t held_max() const { return live_ ? kRecordsHeldLive : kRecordsHeld; }
  bool is_overdue(const Held& held) const;
  void close(std::map<int64_t, Held>::iterator at);
  void number_steps();
  bool all_known();
  void note_held();
  void take_standing(uint32_t host, const CommRecord& record);
  void take_vector(uint32_t host, const RankVector& vector, const RankStreams& streams);
  static void add_sides(Cluster& cluster, const RankVector& v, const RankStreams& streams, Held& held);
  void analyse(Step step);
  void keep_result(StepResult result);
  Step step_of(int64_t number, Held held);

  Cluster cluster_;
  Network network_;
  bool live_;
  std::map<int64_t, Held> held_;
  size_t held_records_ = 0, held_vectors_ = 0;
  Condenser* condenser_ = nullptr;  // borrowed
  bool all_known_ = false;
  RecordList unnumbered_;
  std::optional<int64_t> origin_;  // of the numbers that they are given
  std::vector<int64_t> latest_;    // by rank index: its step
  std::deque<StepResult> steps_;
  size_t rank_steps_ = 0;
  int64_t closed_to_ = -1;
  OpenOperations open_;
  uint64_t taken_ = 0, late_ = 0, duplicates_ = 0, forgotten_ = 0, unplaced_steps_ = 0, beyond_ = 0;
  std::map<std::string_view, uint64_t> faulty_;
  int64_t first_ns_ = INT64_MAX, last_ns_ = 0;
};

}  // namespace culprit::comm
