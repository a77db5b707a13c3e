// Steps in progress: records and summaries by step, until the step is over or the memory is short. Owned by
// CommTrace; one thread; pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/detect/comm/step.h"
#include "core/detect/comm/step_summary.h"
#include "model/comm.h"

namespace culprit::comm {

struct PendingStep {
  SortedRecords records;
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
  void add(int64_t number, const SortedRecord& record) {
    PendingStep& to = step(number);
    to.records.add(record);
    to.last_ns = std::max({to.last_ns, record.start, record.end});
    ++records_;
  }
  // Requires at least one record. Only for files, whose last_ns is not used.
  void add(int64_t number, std::vector<SortedRecord> records) {
    records_ += records.size();
    step(number).records.add(std::move(records));
  }
  // Returns the number of streams that exceed the limits of the cluster.
  uint64_t add(const RankVector& vector, const RankStreams& streams, int64_t end_ns, Cluster& cluster);
  // Removes the oldest step. Requires at least one step.
  Steps::node_type extract_oldest();
  void clear() { *this = {}; }

  const Steps& steps() const { return steps_; }
  size_t size() const { return steps_.size(); }
  size_t records() const { return records_; }
  size_t vectors() const { return vectors_; }  // summaries
  // Whether the oldest of the last `left` steps has waited long enough for a rank that stopped reporting.
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

}  // namespace culprit::comm
