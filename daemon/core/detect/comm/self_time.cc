// Self time of a rank: the time before each of its operations in which it waited for nothing.
#include <algorithm>
#include <cmath>
#include <span>

#include "core/detect/comm/robust.h"
#include "core/detect/comm/step.h"

namespace culprit::comm {
namespace {

// Kinds of operations that run in the background of a rank's work. If the next operation begins before an
// operation's end, the operation did not block the rank. If the next one begins just at its end, it did,
// unless another operation ended there too. Other cases are no evidence. All ranks run one program, so votes
// are counted over all ranks of a kind. Single ranks could decide differently in close cases or with a slow
// network. Receives never count: work needs the received data.
class Background {
 public:
  Background(const Cluster& cluster, Step& step) : cluster_(cluster), step_(step) {
    kinds_.reserve(step.ops.size());
    for (uint32_t i = 0; i < step.ranks.size(); ++i) count(i);
  }
  void mark() {
    for (uint32_t k = 0; k < step_.ops.size() && any_; ++k)
      step_.ops[k].background =
          step_.ops[k].op != CommOp::kRecv && votes_[kinds_[k]].queued > votes_[kinds_[k]].held;
  }

 private:
  struct Votes {
    uint32_t queued = 0, held = 0;
  };

  uint32_t kind_of(uint32_t rank, const Op& op) {
    uint32_t& kind = of_slot_[op.slot * kCommOps + static_cast<size_t>(op.op)];
    if (kind != kNone) return kind;
    const auto [at, fresh] =
        by_key_.try_emplace(side_kind(cluster_, rank, op), static_cast<uint32_t>(votes_.size()));
    if (fresh) votes_.emplace_back();
    return kind = *at;
  }

  void count(uint32_t i) {
    const uint32_t rank = step_.ranks[i], from = step_.begin[i], to = step_.begin[i + 1];
    of_slot_.assign(cluster_.ranks()[rank].slots.size() * kCommOps, kNone);
    for (uint32_t k = from; k < to; ++k) {
      const Op& op = step_.ops[k];
      Votes& votes = votes_[kinds_.emplace_back(kind_of(rank, op))];
      uint32_t next = k + 1;
      while (next < to && step_.ops[next].start <= op.start + kTogetherNs) ++next;
      if (next == to) continue;
      const int64_t after = step_.ops[next].start - op.end;
      const bool alone = next == k + 1 && (k == from || step_.ops[k - 1].end < op.end - kQueuedNs);
      votes.queued += after < -kQueuedNs;
      votes.held += alone && std::abs(after) <= kQueuedNs;
      any_ = any_ || after < -kQueuedNs;
    }
  }

  const Cluster& cluster_;
  Step& step_;
  std::vector<uint32_t> kinds_, of_slot_;  // by operation; by slot and operation, of one rank
  std::vector<Votes> votes_;
  FlatMap<uint32_t> by_key_;
  bool any_ = false;
};

// Operations of one rank in a step. Most block the rank until they end. Background operations (reduced
// gradients, sends) only show when they began. Role compares peers to decide whether a rank waited for the
// end of one.
class Gaps {
 public:
  Gaps(Step& step, uint32_t from, uint32_t to) : step_(step), from_(from), to_(to) {}

  // `began`: end of what preceded the first operation; negative: unknown. Returns the last exit.
  int64_t measure(int64_t began) {
    marker_ = began >= 0 ? began : step_.ops[from_].start;
    int64_t last = marker_;
    for (uint32_t k = from_; k < to_; ++k) {
      Op& op = step_.ops[k];
      settle_background(op.start);
      op.before = marker_op_;
      const bool queued = op.background && done_op_ != kNone && op.start - done_at_ < kQueuedNs;
      op.gap_ms = op.start > marker_ && !queued
                      ? static_cast<float>(kMsPerNs * static_cast<double>(op.start - marker_))
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
  std::vector<uint32_t> running_;  // in the background, not yet ended
};

// By rank index: ranks without the last operation of a stream that most members have. The end of their step
// is unknown.
std::vector<bool> without_end(const Cluster& cluster, const Step& step) {
  std::vector<bool> out(cluster.ranks().size(), false), here(out.size(), false);
  const auto seq_of = [&](const Instance& i) { return step.ops[step.sides[i.first]].seq; };
  std::vector<const Instance*> last(step.channels.size(), nullptr);
  for (const Instance& i : step.instances)
    if (i.count > 0 && (!last[i.local] || seq_of(i) > seq_of(*last[i.local]))) last[i.local] = &i;
  for (const Instance* i : last) {
    const Channel& channel = cluster.channels()[i->channel];
    const bool sent = channel.sender != kNone;
    const auto& group = cluster.comms()[channel.comm].members;
    if (i->count == (sent ? 2 : group.size()) || (!sent && 2 * i->count <= group.size())) continue;
    const uint32_t ends[] = {channel.sender, channel.receiver};
    const std::span<const uint32_t> members = sent ? std::span<const uint32_t>(ends) : group;
    const auto mark = [&](bool value) {
      for (uint32_t k = 0; k < i->count; ++k) here[step.ranks[step.owner[step.sides[i->first + k]]]] = value;
    };
    mark(true);
    for (const uint32_t m : members) out[m] = out[m] || !here[m];
    mark(false);
  }
  return out;
}

}  // namespace

void measure_gaps(Cluster& cluster, Step& step) {
  Background(cluster, step).mark();
  const std::vector<bool> lost = without_end(cluster, step);
  std::vector<double> spans;
  for (uint32_t i = 0; i < step.ranks.size(); ++i) {
    RankInfo& info = cluster.ranks()[step.ranks[i]];
    const uint32_t from = step.begin[i], to = step.begin[i + 1];
    // The gap before the first operation is known if the step before was seen.
    const bool follows = info.last_step + 1 == step.number && info.last_step >= 0;
    const int64_t last = Gaps(step, from, to).measure(follows ? info.last_end : -1);
    // The step time of a rank is the time between its last exits.
    RankStep out;
    out.rank = step.ranks[i];
    out.span = static_cast<float>(
        kMsPerNs * static_cast<double>(last - (follows ? info.last_end : step.ops[from].start)));
    spans.push_back(out.span);
    step.result.ranks.push_back(out);
    info.last_end = last;
    step.result.last_ns = std::max(step.result.last_ns, last);
    info.last_step = lost[step.ranks[i]] ? -1 : step.number;
  }
  step.result.step_ms = spans.empty() ? 0 : quantile(spans, 0.9);
}

}  // namespace culprit::comm
