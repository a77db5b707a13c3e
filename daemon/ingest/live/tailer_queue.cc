#include "ingest/live/tailer_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/hash.h"

namespace culprit::ingest {
namespace {

// Descriptors that a round may open for waiting sources: few compared to the kept ones.
constexpr size_t kAhead = 64;
// Delay of the next attempt if names changed while they were read: a rotation is over by then, and an
// unreadable folder costs little.
constexpr TimeNs kPendingNs = 10 * kNsPerMs;

}  // namespace

void CheckQueue::schedule(TailSource& source, TimeNs at) {
  source.next_look = at;
  if (at >= source.queued_at) return;
  source.queued_at = at;
  due_.emplace(at, source.number);
}

void CheckQueue::schedule_next(TailSource& source) {
  const bool watched = source.folder->watched;
  if (source.changed_at == 0) source.changed_at = time_.mono - kSweepNs;
  const TimeNs idle = (time_.mono - source.changed_at) / kIdleShare;
  const TimeNs longest = watched ? kSweepNs : std::clamp(idle, kPolledLookNs, kSweepNs);
  if (source.changed_at == time_.mono || source.interval == 0) source.interval = kFirstLookNs;
  TimeNs wait = watched && !source.absent_since ? kSweepNs : source.interval;
  if (!source.late.empty() && wait > kPolledLookNs) wait = kPolledLookNs;
  // Jitter, so that a thousand files do not repeatedly fall due in the same round.
  const TimeNs jitter = static_cast<TimeNs>(mix64(source.info.id, 1) % 256) * wait / 1024;
  source.interval = std::min(source.interval * 2, longest);
  schedule(source, time_.mono + wait - jitter);
}

TailSource* CheckQueue::pop_due() {
  while (!due_.empty() && due_.top().first <= time_.mono) {
    const auto [at, number] = due_.top();
    due_.pop();
    TailSource* const source = sources_.get(number);
    if (source == nullptr || source->ended || source->queued_at != at) continue;
    source->queued_at = std::numeric_limits<TimeNs>::max();
    if (source->next_look <= time_.mono) return source;
    schedule(*source, source->next_look);
  }
  return nullptr;
}

void CheckQueue::retry(TailSource& source) {
  if (!std::exchange(source.pending, true)) pending_.push_back(source.number);
}

std::vector<TailSource*> CheckQueue::take_retries() {
  std::vector<TailSource*> retries;
  const auto end = pending_.begin() + static_cast<ptrdiff_t>(std::min(pending_.size(), kAhead));
  for (auto at = pending_.begin(); at != end; ++at) {
    TailSource* const source = sources_.get(*at);
    if (source == nullptr || source->ended) continue;
    source->pending = false;
    retries.push_back(source);
  }
  pending_.erase(pending_.begin(), end);
  return retries;
}

void CheckQueue::make_ready(TailSource& source) {
  if (source.ready || time_.mono < source.not_before) return;
  source.ready = true;
  ready_[source.info.uid].push_back(source.number);
  ++ready_count_;
}

TailSource* CheckQueue::pop_ready() {
  while (!ready_.empty()) {
    auto owner = ready_.upper_bound(last_);
    if (owner == ready_.end()) owner = ready_.begin();
    TailSource* const source = sources_.get(owner->second.front());
    last_ = owner->first;
    owner->second.pop_front();
    if (owner->second.empty()) ready_.erase(owner);
    --ready_count_;
    if (source == nullptr) continue;
    source->ready = false;
    return source;
  }
  return nullptr;
}

TimeNs CheckQueue::next_time(TimeNs latest) const {
  TimeNs next = latest;
  if (!due_.empty()) next = std::min(next, due_.top().first);
  if (!pending_.empty()) next = std::min(next, time_.mono + kPendingNs);
  return next;
}

}  // namespace culprit::ingest
