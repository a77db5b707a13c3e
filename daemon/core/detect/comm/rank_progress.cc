#include "core/detect/comm/rank_progress.h"

#include <algorithm>
#include <utility>

namespace culprit::comm {

bool RankProgress::advance(uint32_t rank, int64_t step, int64_t begin_ns) {
  const bool caught_up = move(rank, step);
  newest_ns_[rank] = std::max(newest_ns_[rank], begin_ns);
  return caught_up;
}

bool RankProgress::move(uint32_t rank, int64_t step) {
  if (rank >= latest_.size()) {
    latest_.resize(rank + 1, -1);
    newest_ns_.resize(rank + 1, 0);
  }
  int64_t& latest = latest_[rank];
  if (step <= latest) return false;
  known_ += latest < 0;
  const bool caught_up = back_.erase(rank) > 0 && back_.empty();
  if (const auto at = ranks_in_.find(latest); at != ranks_in_.end() && --at->second == 0) ranks_in_.erase(at);
  latest = step;
  ++ranks_in_[step];
  return caught_up;
}

void RankProgress::note_back(uint32_t rank, int64_t step, int64_t begin_ns) {
  Back& back = back_.try_emplace(rank, Back{step, begin_ns}).first->second;
  back.step = std::max(back.step, step);
  back.first_ns = std::min(back.first_ns, begin_ns);
}

int64_t RankProgress::restarted_ns() const {
  // Other ranks may have restarted earlier than those seen so far, on clocks that differ.
  int64_t first = 1 + *std::max_element(newest_ns_.begin(), newest_ns_.end());
  for (const auto& [rank, back] : back_) first = std::min(first, back.first_ns);
  return first;
}

std::vector<int64_t> RankProgress::restart() {
  const auto back = std::exchange(back_, {});
  latest_.assign(latest_.size(), -1);
  ranks_in_.clear();
  known_ = 0;
  complete_ = false;
  std::vector<int64_t> steps;
  for (const auto& [rank, b] : back) {
    (void)move(rank, b.step);
    steps.push_back(b.step);
  }
  return steps;
}

uint32_t RankProgress::ranks_in(int64_t from, int64_t to) const {
  uint32_t n = 0;
  for (auto at = ranks_in_.lower_bound(from); at != ranks_in_.end() && at->first < to; ++at) n += at->second;
  return n;
}

bool RankProgress::is_complete(Cluster& cluster) {
  if (complete_) return true;
  cluster.settle();
  complete_ = std::all_of(cluster.comms().begin(), cluster.comms().end(), [this](const CommInfo& comm) {
    const bool members = std::all_of(comm.members.begin(), comm.members.end(),
                                     [this](uint32_t r) { return r < latest_.size() && latest_[r] >= 0; });
    return members && comm.members.size() >= comm.reported_size;
  });
  return complete_;
}

}  // namespace culprit::comm
