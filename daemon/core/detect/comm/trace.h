// Records of communication, taken as they come: sorted into steps, a step analysed once it is over, and its
// records dropped. Vectors that hosts tell in their place come in beside them; or a step that is over is
// condensed into such vectors, where others judge. Files and rings come in by the same way; what is kept
// grows with ranks and steps, never with records. Steps whose number is not told are found by what repeats.
// A live job that is started again goes back to an earlier step: it is seen by half of the ranks going back.
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

#include "core/detect/comm/asked.h"
#include "core/detect/comm/cluster.h"
#include "core/detect/comm/hang.h"
#include "core/detect/comm/hidden_waits.h"
#include "core/detect/comm/left_out.h"
#include "core/detect/comm/mismatch.h"
#include "core/detect/comm/network.h"
#include "core/detect/comm/parallel.h"
#include "core/detect/comm/result.h"
#include "core/detect/comm/steps.h"
#include "core/detect/comm/vectors.h"
#include "model/comm.h"
#include "model/report.h"

namespace culprit::comm {

// Records that grow without being moved; a few of them take little.
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
  // `job` is borrowed. `live`: a step is closed when all ranks have gone beyond it; otherwise when the report
  // is asked for, or memory is short. What is said does not depend on `parallel`.
  CommTrace(const JobFile* job, bool live, Parallel parallel = {})
      : cluster_(job), live_(live), parallel_(std::move(parallel)) {}

  // `host` wrote them; empty: not known.
  void take(const std::string& host, std::span<const CommRecord> records);

  // What another host tells of its ranks. `streams`: all that were told in its session.
  void take_vectors(const std::string& host, const HostVectors& told,
                    const std::vector<RankStreams>& streams);
  // What is to be asked of hosts that tell vectors, now that these are judged.
  std::vector<StepsWanted> ask(const std::vector<Culprit>& culprits);
  // From now on what is over goes there, and nothing is judged.
  void condense_into(Condenser* condenser) { condenser_ = condenser; }
  // Where all ranks stand: what they entered and did not leave, and of each stream the last that they left.
  std::vector<CommRecord> standing() const;
  bool waits() const { return !open_.empty(); }  // somebody is inside of an operation, for all that is known

  bool empty() const { return taken_ == 0; }
  bool live() const { return live_; }
  // Analyses what is held, except in a live job's steps that go on.
  void settle();

  const Cluster& cluster() const { return cluster_; }
  const std::deque<StepResult>& steps() const { return steps_; }
  // In finished steps; in a job that stands still, also in the steps under way.
  std::vector<Mismatch> mismatches(Stopped stopped) const;
  std::optional<LeftOut> left_out() const { return left_out_.find(); }
  // Operations that had not ended when the records did.
  std::optional<Stuck> stuck(Stopped stopped = Stopped::kRecordsEnd) const;
  // What was dropped, and why: a sentence each.
  std::vector<std::string> told_drops() const;
  // Ranks that others speak of and of which nothing came, in a sentence.
  std::optional<std::string> missing() const;
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
  bool goes_back(uint32_t rank, int64_t step, int64_t begin_ns) const;
  void note_back(uint32_t rank, int64_t step, int64_t begin_ns);
  void start_again();
  void drop_again();
  void close_ready();
  size_t held_max() const { return live_ ? kRecordsHeldLive : kRecordsHeld; }
  bool full() const {
    return held_records_ > held_max() || held_vectors_ > kVectorsHeld || held_.size() > kStepsHeld;
  }
  bool is_overdue(const Held& held, size_t left) const;
  bool all_known();
  size_t ready();
  void close(size_t oldest);
  size_t together(size_t most) const;
  void close_plain(size_t n);
  void close_told();
  void build(int64_t number, const RecordList& list, Step& step) const;
  void number_steps();
  void take_standing(uint32_t host, const CommRecord& record);
  void take_vector(uint32_t host, const RankVector& vector, const RankStreams& streams);
  void add_sides(const RankVector& v, const RankStreams& streams, Held& held);
  void analyse(int64_t number, Held held);
  void take_answer(uint32_t host, const StepRecords& told, const std::vector<RankStreams>& streams);
  void look_at_answers();
  bool look_at_records(const Asked::Answer& answer, Step& step);
  void keep_result(StepResult result);

  Cluster cluster_;
  Network network_;
  bool live_;
  Parallel parallel_;
  std::map<int64_t, Held> held_;
  Held* recent_ = nullptr;  // of recent_step_: records of one step come together
  int64_t recent_step_ = -1;
  size_t held_records_ = 0, held_vectors_ = 0;
  std::vector<std::unique_ptr<Step>> work_;  // that are analysed at a time
  Condenser* condenser_ = nullptr;           // borrowed
  bool all_known_ = false;
  RecordList unnumbered_;
  StepCount step_count_;         // of those that were numbered
  std::vector<int64_t> latest_;  // by rank index: its step
  uint32_t known_ = 0;           // ranks of which it is known
  // What ranks tell that went back behind steps that are closed, kept apart until half of them did.
  struct Back {
    int64_t step = 0, first_ns = 0;  // its latest; its first entry
  };
  std::vector<int64_t> newest_ns_;  // by rank index: its latest entry
  std::map<uint32_t, Back> back_;   // by rank index
  std::map<int64_t, Held> again_;
  size_t again_records_ = 0, again_vectors_ = 0;
  int64_t started_ns_ = 0;  // what was entered before is of the job before it was started again
  std::deque<StepResult> steps_;
  std::vector<Mismatch> mismatches_;
  LeftOutWatch left_out_;
  HiddenWaits hidden_waits_;
  Asked asked_;
  Network of_asked_;       // what is usual of operations in the records that were asked for
  size_t rank_steps_ = 0;  // of their ranks; a step itself counts too
  int64_t closed_to_ = -1;
  OpenOperations open_;
  uint64_t taken_ = 0, late_ = 0, duplicates_ = 0, forgotten_ = 0, unplaced_steps_ = 0, beyond_ = 0,
           scattered_ = 0, cut_off_ = 0;
  std::map<std::string_view, uint64_t> faulty_;
  int64_t first_ns_ = INT64_MAX, last_ns_ = 0;
};

}  // namespace culprit::comm
