// Ingests communication records and sorts them into steps. A step is analysed once it is over, and its
// records are dropped. Summaries from other hosts enter the same steps. With a condenser set, a finished step
// becomes summaries for a collector instead. Files and rings use the same interface. Memory grows with ranks
// and steps, never with records. Steps without a number are found by repetition. A live job that restarts
// goes back to an earlier step; the restart is recognised when half of the ranks have gone back.
// Pure; one thread.
#pragma once

#include <algorithm>
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
#include "core/detect/comm/hidden_waits.h"
#include "core/detect/comm/left_out.h"
#include "core/detect/comm/mismatch.h"
#include "core/detect/comm/network.h"
#include "core/detect/comm/parallel.h"
#include "core/detect/comm/record_requests.h"
#include "core/detect/comm/result.h"
#include "core/detect/comm/step_summary.h"
#include "core/detect/comm/steps.h"
#include "model/comm.h"
#include "model/report.h"

namespace culprit::comm {

// A growing list that never moves its records; short lists need little memory.
class RecordList {
 public:
  void add(const CommRecord& record) {
    if (blocks_.empty() || blocks_.back().size() == blocks_.back().capacity()) {
      blocks_.emplace_back();
      blocks_.back().reserve(std::clamp<size_t>(size_, 1, 1 << 14));
    }
    blocks_.back().push_back(record);
    ++size_;
  }
  size_t size() const { return size_; }
  template <class Take>
  void for_each(Take take) const {
    for (const auto& block : blocks_)
      for (const CommRecord& record : block) take(record);
  }

 private:
  std::vector<std::vector<CommRecord>> blocks_;
  size_t size_ = 0;
};

class CommTrace {
 public:
  // `job` is borrowed. `live`: close a step when all ranks have passed it; else at the report or when memory
  // is short. Results do not depend on `parallel`.
  CommTrace(const JobFile* job, bool live, Parallel parallel = {})
      : cluster_(job), live_(live), parallel_(std::move(parallel)) {}

  // `host` wrote the records; empty: unknown.
  void add_records(const std::string& host, std::span<const CommRecord> records);

  // Adds summaries from another host. `streams`: all stream tables sent in its session.
  void add_summaries(const std::string& host, const HostVectors& reported,
                     const std::vector<RankStreams>& streams);
  // What to request from hosts that send summaries, given the judged culprits.
  std::vector<StepsWanted> request_records(const std::vector<Culprit>& culprits);
  // From now on finished steps go to `condenser`, and none is judged.
  void condense_into(StepSummarizer* condenser) { condenser_ = condenser; }
  // Positions of all ranks: operations entered and not left, and the last operation left per stream.
  std::vector<CommRecord> standing() const;
  bool waits() const { return !open_.empty(); }  // some rank is inside an operation, as far as known

  bool empty() const { return taken_ == 0; }
  bool live() const { return live_; }
  // Analyses all held steps, except steps of a live job that are still in progress.
  void settle();

  const Cluster& cluster() const { return cluster_; }
  const std::deque<StepResult>& steps() const { return steps_; }
  // From finished steps; for a job without progress, also from steps in progress.
  std::vector<Mismatch> mismatches(Stopped stopped) const;
  std::optional<LeftOut> left_out() const { return left_out_.find(); }
  // Operations that had not ended when the records ended.
  std::optional<Stuck> stuck(Stopped stopped = Stopped::kRecordsEnd) const;
  // What was dropped and why, one sentence each.
  std::vector<std::string> drop_sentences() const;
  // A sentence on ranks that other ranks refer to and that sent no records.
  std::optional<std::string> missing() const;
  uint64_t records() const { return taken_; }
  int64_t first_ns() const { return first_ns_; }
  int64_t last_ns() const { return last_ns_; }

 private:
  struct PendingStep {
    RecordList records;
    std::vector<RankSides> ranks;  // from summaries
    std::vector<VectorSide> sides;
    uint32_t ranks_in = 0;  // number of ranks whose latest step it is
    int64_t last_ns = 0;    // of its records
  };

  void keep(uint32_t host, const CommRecord& record);
  void buffer(uint32_t rank, const CommRecord& record);
  void note_progress(uint32_t rank, int64_t step);
  bool goes_back(uint32_t rank, int64_t step, int64_t begin_ns) const;
  void note_back(uint32_t rank, int64_t step, int64_t begin_ns);
  void start_again();
  void drop_again();
  void close_ready();
  size_t held_max() const { return live_ ? kRecordsHeldLive : kRecordsHeld; }
  bool full() const {
    return held_records_ > held_max() || held_vectors_ > kVectorsHeld || held_.size() > kStepsHeld;
  }
  bool is_overdue(const PendingStep& held, size_t left) const;
  bool all_known();
  size_t ready();
  void close(size_t oldest);
  size_t closable_together(size_t most) const;
  void close_plain(size_t n);
  void close_reported();
  void build(int64_t number, const RecordList& list, Step& step) const;
  void number_steps();
  void add_standing(uint32_t host, const CommRecord& record);
  void add_summary(uint32_t host, const RankVector& vector, const RankStreams& streams);
  void add_sides(const RankVector& v, const RankStreams& streams, PendingStep& held);
  void analyse(int64_t number, PendingStep held);
  void add_answer(uint32_t host, const StepRecords& reported, const std::vector<RankStreams>& streams);
  void look_at_answers();
  bool look_at_records(const RecordRequests::Answer& answer, Step& step);
  void keep_result(StepResult result);

  Cluster cluster_;
  Network network_;
  bool live_;
  Parallel parallel_;
  std::map<int64_t, PendingStep> held_;
  PendingStep* recent_ = nullptr;  // step recent_step_; records of one step arrive together
  int64_t recent_step_ = -1;
  size_t held_records_ = 0, held_vectors_ = 0;
  std::vector<std::unique_ptr<Step>> work_;  // steps analysed in parallel
  StepSummarizer* condenser_ = nullptr;      // borrowed
  bool all_known_ = false;
  RecordList unnumbered_;
  StepCount step_count_;         // of records numbered so far
  std::vector<int64_t> latest_;  // by rank index: latest step
  uint32_t known_ = 0;           // number of ranks in latest_ with a step
  // Input of ranks that went back behind closed steps. Kept apart until half of the ranks went back.
  struct Back {
    int64_t step = 0, first_ns = 0;  // latest step; first entry
  };
  std::vector<int64_t> newest_ns_;  // by rank index: latest entry
  std::map<uint32_t, Back> back_;   // by rank index
  std::map<int64_t, PendingStep> again_;
  size_t again_records_ = 0, again_vectors_ = 0;
  int64_t started_ns_ = 0;  // entries before this time belong to the run before the restart
  std::deque<StepResult> steps_;
  std::vector<Mismatch> mismatches_;
  LeftOutWatch left_out_;
  HiddenWaits hidden_waits_;
  RecordRequests asked_;
  Network of_asked_;       // usual durations in requested records
  size_t rank_steps_ = 0;  // results of ranks in steps_, plus a fixed amount per step
  int64_t closed_to_ = -1;
  OpenOperations open_;
  uint64_t taken_ = 0, late_ = 0, duplicates_ = 0, forgotten_ = 0, unplaced_steps_ = 0, beyond_ = 0,
           scattered_ = 0, cut_off_ = 0;
  std::map<std::string_view, uint64_t> faulty_;
  int64_t first_ns_ = INT64_MAX, last_ns_ = 0;
};

}  // namespace culprit::comm
