// Ingests communication records and sorts them into steps. A step is analysed once it is over, and its
// records are dropped. Summaries from other hosts enter the same steps. If a condenser is set, finished steps
// become summaries for a collector and are not judged. Files and rings use the same interface. Memory grows
// with ranks and steps, never with records. Steps without a number are found by repetition. A restarted live
// job returns to an earlier step; the restart is recognised when half of the ranks have returned. Pure; one
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/detect/comm/cluster.h"
#include "core/detect/comm/finished_steps.h"
#include "core/detect/comm/hang.h"
#include "core/detect/comm/left_out.h"
#include "core/detect/comm/mismatch.h"
#include "core/detect/comm/parallel.h"
#include "core/detect/comm/pending_steps.h"
#include "core/detect/comm/rank_progress.h"
#include "core/detect/comm/record_requests.h"
#include "core/detect/comm/result.h"
#include "core/detect/comm/sorted_block.h"
#include "core/detect/comm/step_summary.h"
#include "core/detect/comm/steps.h"
#include "model/comm.h"
#include "model/report.h"

namespace culprit::comm {

class CommTrace {
 public:
  // `job` is borrowed. `live`: steps close when all ranks have passed them; else at the report or when memory
  // is short. Results do not depend on `parallel`.
  CommTrace(const JobFile* job, bool live, Parallel parallel = {})
      : cluster_(job), live_(live), finished_(std::move(parallel)) {}

  // `host` wrote the records; empty: unknown.
  void add_records(const std::string& host, std::span<const CommRecord> records);
  // Equivalent to adding the blocks in order; sorts blocks of files in parallel.
  void add_records(std::span<const HostRecords> blocks);

  // Adds summaries from another host. `streams`: all stream tables sent in its session.
  void add_summaries(const std::string& host, const HostVectors& reported,
                     const std::vector<RankStreams>& streams);
  // What to request from hosts that send summaries, given the judged culprits.
  std::vector<StepsWanted> request_records(const std::vector<Culprit>& culprits);
  // From now on finished steps go to `condenser`, and none is judged.
  void condense_into(StepSummarizer* condenser) { condenser_ = condenser; }
  // Positions of all ranks: operations entered and not left, and the last operation left per stream.
  std::vector<CommRecord> open_records() const;
  bool waits() const { return !open_.empty(); }  // some rank has an open operation

  bool empty() const { return taken_ == 0; }
  bool live() const { return live_; }
  // Analyses all held steps, except steps of a live job that are still in progress.
  void settle();

  const Cluster& cluster() const { return cluster_; }
  const std::deque<StepResult>& steps() const { return finished_.results(); }
  std::vector<StepPicture> pictures() const { return finished_.pictures(); }
  // From finished steps; for a job without progress, also from steps in progress.
  std::vector<Mismatch> mismatches(Stopped stopped) const;
  std::optional<LeftOut> left_out() const { return finished_.left_out(); }
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
  void keep(uint32_t host, const CommRecord& record);
  std::vector<SortedBlock> sort(std::span<const HostRecords> blocks);
  void keep(SortedBlock block);
  void buffer(int64_t step, const SortedRecord& record);
  void note_progress(uint32_t rank, int64_t step, int64_t begin_ns);
  bool goes_back(uint32_t rank, int64_t step, int64_t begin_ns) const {
    return live_ && progress_.goes_back(rank, step, begin_ns);
  }
  void note_back(uint32_t rank, int64_t step, int64_t begin_ns);
  void start_again();
  void drop_again();
  void close_ready();
  size_t held_max() const { return live_ ? kRecordsHeldLive : kRecordsHeld; }
  size_t held_records() const { return held_.records() + unnumbered_.size(); }
  bool full() const {
    return held_records() > held_max() || held_.vectors() > kVectorsHeld || held_.size() > kStepsHeld;
  }
  size_t ready();
  void close(size_t oldest);
  void close_plain(size_t n);
  void close_reported();
  void number_steps();
  void add_open(uint32_t host, const CommRecord& record);
  void add_summary(uint32_t host, const RankVector& vector, const RankStreams& streams);
  void add_answer(uint32_t host, const StepRecords& reported, const std::vector<RankStreams>& streams);

  Cluster cluster_;
  bool live_;
  PendingSteps held_;
  // Input of ranks that returned to already closed steps. Stored separately until half of the ranks have
  // returned.
  PendingSteps again_;
  RankProgress progress_;
  int64_t started_ns_ = 0;               // entries before this time belong to the run before the restart
  StepSummarizer* condenser_ = nullptr;  // borrowed
  RecordList<CommRecord> unnumbered_;
  StepCount step_count_;  // of records numbered so far
  FinishedSteps finished_;
  int64_t closed_to_ = -1;
  OpenOperations open_;
  uint64_t taken_ = 0, late_ = 0, unplaced_steps_ = 0, beyond_ = 0, scattered_ = 0, cut_off_ = 0;
  std::map<std::string_view, uint64_t> faulty_;
  int64_t first_ns_ = INT64_MAX, last_ns_ = 0;
};

}  // namespace culprit::comm
