// Assembles rows of ranks, in any order, into steps. A step is complete when all live ranks have passed it. A
// missing rank delays it by at most a few steps. If half of the ranks return to earlier steps, a new run
// begins (a restart, a rollback). If a single rank does, two senders share its rank number. Owned by one
// detector; one thread.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/detect/numerics/frame.h"
#include "core/detect/numerics/names.h"
#include "model/metric.h"

namespace culprit::numerics {

class Window {
 public:
  struct Ready {
    std::vector<Frame> frames;  // complete, ascending by step
    bool restarted = false;     // a new run begins after these frames
  };
  Ready add(const MetricRow& row);
  // Returns a frame for reuse.
  void recycle(Frame&& frame);
  // Incomplete frames, ascending by step.
  const std::deque<Frame>& open() const { return runs_[0]; }

  const Names& names() const { return names_; }
  const Names& digest_names() const { return digest_names_; }
  size_t slots() const { return ranks_.size(); }
  uint32_t rank(uint32_t slot) const { return ranks_[slot].rank; }
  const std::string& host(uint32_t slot) const { return ranks_[slot].host; }
  // The slot of a rank; a new rank gets one while there is room. `host` may be empty: unknown.
  std::optional<uint32_t> slot_of(uint32_t rank, std::string_view host);

  std::vector<std::string> problems() const;

 private:
  struct Rank {
    uint32_t rank = 0;
    std::string host;
    int64_t last_step = -1;
    TimeNs last_ns = kNoTime;
    int64_t last_frame = 0;  // value of closed_frames_ when the rank was seen last
    bool ahead = false;      // has begun a new run before the others
    uint32_t clashes = 0;
  };
  enum class Place { kOpen, kLate, kAhead };

  Place place(Rank& rank, const MetricRow& row);
  Frame& frame(std::deque<Frame>& run, int64_t step);
  void add(Frame& frame, uint32_t slot, const MetricRow& row);
  bool is_alive(const Rank& rank) const;
  void close(Ready& ready, size_t keep);
  void restart(Ready& ready);

  Names names_, digest_names_;
  std::vector<Rank> ranks_;                         // by slot
  std::unordered_map<uint32_t, uint32_t> slot_of_;  // by rank
  std::deque<Frame> runs_[2];                       // the current run, and the run ahead of it
  std::vector<Frame> spare_;
  int64_t closed_step_ = -1, closed_frames_ = 0;
  uint64_t behind_ = 0;  // live ranks that have not passed the first open step
  uint64_t late_ = 0, refused_ranks_ = 0, clashes_ = 0, strangers_ = 0;
  std::optional<uint32_t> stranger_;
};

}  // namespace culprit::numerics
