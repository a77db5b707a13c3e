// What a rank did of its own: the time before each of its operations in which it waited for nothing.
#include <algorithm>
#include <cmath>

#include "core/detect/comm/robust.h"
#include "core/detect/comm/step.h"

namespace culprit::comm {
namespace {

constexpr double kMs = 1e-6;  // of a nanosecond
// Stamps that lie nearer to one another were taken together.
constexpr int64_t kTogetherNs = 2000;
// An operation that begins so soon after another of its kind stood in a queue behind it, and one that begins
// so shortly before another ends followed it: launches and stamps are no finer.
constexpr int64_t kQueuedNs = 50'000;

// The operations of one rank in a step. Most hold it up until they end. Some run beside its work (gradients
// that are reduced while the next ones are computed, sends that nobody waits for): those only tell when they
// were begun. Whether the end of such a one was waited for, no rank can say alone: Role asks its peers.
class Gaps {
 public:
  Gaps(Step& step, uint32_t from, uint32_t to, size_t slots) : step_(step), from_(from), to_(to) {
    mark_background(slots);
  }

  // `began`: when what came before the first operation was over; negative: not known. Gives the last exit.
  int64_t measure(int64_t began) {
    marker_ = began >= 0 ? began : step_.ops[from_].start;
    int64_t last = marker_;
    for (uint32_t k = from_; k < to_; ++k) {
      Op& op = step_.ops[k];
      settle_background(op.start);
      op.before = marker_op_;
      const bool queued = op.background && done_op_ != kNone && op.start - done_at_ < kQueuedNs;
      op.gap_ms = op.start > marker_ && !queued
                      ? static_cast<float>(kMs * static_cast<double>(op.start - marker_))
                      : 0;
      op.awaited = done_op_ != kNone && done_at_ > marker_ && !op.background ? done_op_ : kNone;
      if (k == from_ && began < 0) op.gap_ms = NAN;
      if (op.background) {
        running_.push_back(k);
        if (!queued) set_marker(op.start, k);
      } else {
        set_marker(op.end, k);
      }
      last = std::max(last, op.end);
    }
    return last;
  }

 private:
  void set_marker(int64_t at, uint32_t op) {
    if (marker_op_ == kNone || at >= marker_) marker_op_ = op;
    marker_ = std::max(marker_, at);
  }

  // Kinds of which most had another operation begin while they ran. Not receives: what is received is needed,
  // and its end is what work waits for.
  void mark_background(size_t slots) {
    struct Count {
      uint32_t all = 0, beside = 0;
    };
    std::vector<Count> counts(slots * kCommOps);
    const auto kind = [this](uint32_t k) {
      return step_.ops[k].slot * kCommOps + static_cast<size_t>(step_.ops[k].op);
    };
    bool any = false;
    for (uint32_t k = from_; k < to_; ++k) {
      uint32_t next = k + 1;
      while (next < to_ && step_.ops[next].start <= step_.ops[k].start + kTogetherNs) ++next;
      const bool beside = next < to_ && step_.ops[next].start + kQueuedNs < step_.ops[k].end;
      ++counts[kind(k)].all;
      counts[kind(k)].beside += beside;
      any = any || beside;
    }
    for (uint32_t k = from_; k < to_ && any; ++k)
      step_.ops[k].background =
          step_.ops[k].op != CommOp::kRecv && 2 * counts[kind(k)].beside > counts[kind(k)].all;
  }

  void settle_background(int64_t now) {
    for (size_t i = 0; i < running_.size();) {
      const int64_t end = step_.ops[running_[i]].end;
      if (end > now) {
        ++i;
        continue;
      }
      if (done_op_ == kNone || end >= done_at_) done_op_ = running_[i], done_at_ = end;
      running_[i] = running_.back();
      running_.pop_back();
    }
  }

  Step& step_;
  const uint32_t from_, to_;
  int64_t marker_ = 0, done_at_ = 0;
  uint32_t marker_op_ = kNone, done_op_ = kNone;
  std::vector<uint32_t> running_;  // in the background, not ended yet
};

}  // namespace

void measure_gaps(Cluster& cluster, Step& step) {
  std::vector<double> spans;
  for (uint32_t i = 0; i < step.ranks.size(); ++i) {
    RankInfo& info = cluster.ranks()[step.ranks[i]];
    const uint32_t from = step.begin[i], to = step.begin[i + 1];
    // What came before the first operation is known where the step before was seen.
    const bool follows = info.last_step + 1 == step.number && info.last_step >= 0;
    const int64_t last = Gaps(step, from, to, info.slots.size()).measure(follows ? info.last_end : -1);
    // How long the step took for this rank is what lies between its last exits.
    RankStep out;
    out.rank = step.ranks[i];
    out.span = static_cast<float>(
        kMs * static_cast<double>(last - (follows ? info.last_end : step.ops[from].start)));
    spans.push_back(out.span);
    step.result.ranks.push_back(out);
    info.last_end = last;
    step.result.last_ns = std::max(step.result.last_ns, last);
    info.last_step = step.number;
  }
  step.result.step_ms = spans.empty() ? 0 : quantile(spans, 0.9);
}

}  // namespace culprit::comm
