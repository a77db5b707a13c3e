// Steps in progress: records and summaries by step, until the step is over or the memory is short. Owned by
// CommTrace; one thread; pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "core/detect/comm/step.h"
#include "core/detect/comm/step_summary.h"
#include "model/comm.h"

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

struct PendingStep {
  RecordList records;
  std::vector<RankSides> ranks;  // from summaries
  std::vector<VectorSide> sides;
  int64_t last_ns = 0;  // of its records
};

class PendingSteps {
 public:
  using Steps = std::map<int64_t, PendingStep>;

  // The step is added if it is new.
  PendingStep& step(int64_t number) {
    if (recent_ == nullptr || number != recent_step_) {
      recent_ = &steps_[number];
      recent_step_ = number;
    }
    return *recent_;
  }
  void add(int64_t number, const CommRecord& record, int64_t end_ns) {
    PendingStep& to = step(number);
    to.records.add(record);
    to.last_ns = std::max(to.last_ns, end_ns);
    ++records_;
  }
  // Returns the number of streams that exceed the limits of the cluster.
  uint64_t add(const RankVector& vector, const RankStreams& streams, int64_t end_ns, Cluster& cluster);
  // Removes the oldest step; there is one.
  Steps::node_type extract_oldest();
  void clear() { *this = {}; }

  const Steps& steps() const { return steps_; }
  size_t size() const { return steps_.size(); }
  size_t records() const { return records_; }
  size_t vectors() const { return vectors_; }  // summaries
  // Whether the oldest of the last `left` steps need not wait longer for a rank that no longer reports.
  bool is_overdue(const PendingStep& held, size_t left) const;
  // Number of steps among the `most` oldest that are analysed in parallel by `width` threads. Ends before a
  // step with summaries.
  size_t closable_together(size_t most, size_t width) const;

 private:
  Steps steps_;
  PendingStep* recent_ = nullptr;  // step recent_step_; records of one step arrive together
  int64_t recent_step_ = -1;
  size_t records_ = 0, vectors_ = 0;
};

// Adds the summary of a rank, with its streams mapped to slots of the cluster. Returns the number of streams
// that exceed the limits of the cluster.
uint64_t add_sides(const RankVector& vector, const RankStreams& streams, Cluster& cluster, PendingStep& step);

void build_step(const Cluster& cluster, int64_t number, const RecordList& list, Step& step);

}  // namespace culprit::comm
