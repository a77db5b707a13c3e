#include "app/jobs/live_events.h"

#include <iterator>
#include <utility>

#include "base/limits.h"

namespace culprit::app {

void LiveEvents::add(std::vector<LiveEvent>& out, bool restoring) {
  for (LiveEvent& e : out) {
    e.replayed = restoring;
    const bool asks = e.kind == LiveEventKind::kStepsWanted || e.kind == LiveEventKind::kStacksWanted;
    if (asks && restoring) continue;  // the stored answer is ingested too
    if (e.kind == LiveEventKind::kFinding && restoring) {
      if (replayed_.size() >= limits::kLiveEvents) replayed_.pop_front();
      replayed_.push_back(std::move(e));
    } else if (e.kind == LiveEventKind::kFinding && events_.size() >= limits::kLiveEvents) {
      ++lost_;
    } else {
      events_.push_back(std::move(e));
    }
  }
  out.clear();
}

void LiveEvents::replayed() {
  std::move(replayed_.begin(), replayed_.end(), std::back_inserter(events_));
  replayed_.clear();
}

std::vector<LiveEvent> LiveEvents::drain() {
  std::vector<LiveEvent> out(std::make_move_iterator(events_.begin()),
                             std::make_move_iterator(events_.end()));
  events_.clear();
  return out;
}

}  // namespace culprit::app
