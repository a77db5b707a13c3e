// Self time of a rank: the time before each operation without waiting.
#include <algorithm>
#include <cmath>
#include <span>

#include "core/detect/comm/robust.h"
#include "core/detect/comm/step.h"

namespace culprit::comm {
namespace {

// Kinds of operations that run in the background of a rank's work. An operation did not block the rank if the
// next operation begins before its end. It did if the next one begins just at its end, unless another
// operation ended there too. Other cases are no evidence. All ranks run one program, so votes are counted
// over all ranks of a kind. Single ranks could decide differently in close cases or with a slow network.
// Receives are never background: work needs the received data.
class Background {
 public:
  Background(const Cluster& cluster, Step& step) : cluster_(cluster), step_(step) {}

  void find() {
    step_.side_kinds.clear();
    step_.side_kinds.reserve(step_.ops.size());
    step_.ended.clear();
    for (uint32_t i = 0; i < step_.ranks.size(); ++i) count(i);
    step_.in_background.clear();
    if (!any_) return;
    for (const Votes& votes : votes_) step_.in_background.push_back(votes.queued > votes.held);
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
    int64_t ended = INT64_MIN;
    for (uint32_t k = from; k < to; ++k) {
      const Op& op = step_.ops[k];
      ended = std::max(ended, op.end);
      Votes& votes = votes_[step_.side_kinds.emplace_back(kind_of(rank, op))];
      uint32_t next = k + 1;
      while (next < to && step_.ops[next].start <= op.start + kTogetherNs) ++next;
      if (next == to) continue;
      const int64_t after = step_.ops[next].start - op.end;
      const bool alone = next == k + 1 && (k == from || step_.ops[k - 1].end < op.end - kQueuedNs);
      votes.queued += after < -kQueuedNs;
      votes.held += alone && std::abs(after) <= kQueuedNs;
      any_ = any_ || after < -kQueuedNs;
    }
    step_.ended.push_back(ended);
  }

  const Cluster& cluster_;
  Step& step_;
  std::vector<uint32_t> of_slot_;  // by slot and operation, of one rank
  std::vector<Votes> votes_;       // by kind
  FlatMap<uint32_t> by_key_;
  bool any_ = false;
};

// Operations of one rank in a step. Most block the rank until they end. Background operations (reduced
// gradients, sends) only mark a time at their start. Role compares peers to decide whether a rank waited for
// the end of one.
class Gaps {
 public:
  Gaps(Step& step, uint32_t from, uint32_t to) : step_(step), from_(from), to_(to) {}

  // `began`: end of what preceded the first operation; negative: unknown.
  void measure(int64_t began) {
    marker_ = began >= 0 ? began : step_.ops[from_].start;
    const bool any = !step_.in_background.empty();
    for (uint32_t k = from_; k < to_; ++k) {
      Op& op = step_.ops[k];
      op.background = any && op.op != CommOp::kRecv && step_.in_background[step_.side_kinds[k]];
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
    }
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

// Sets Step::cut_off: ranks without the last operation of a stream that most members have.
void find_cut_off(const Cluster& cluster, Step& step) {
  step.cut_off.assign(step.ranks.size(), false);
  std::vector<bool> out(cluster.ranks().size(), false), here(out.size(), false);
  for (const uint32_t at : step.last) {
    const Instance& i = step.instances[at];
    const Channel& channel = cluster.channels()[i.channel];
    const bool sent = channel.sender != kNone;
    const auto& group = cluster.comms()[channel.comm].members;
    if (i.count == (sent ? 2 : group.size()) || (!sent && 2 * i.count <= group.size())) continue;
    const uint32_t ends[] = {channel.sender, channel.receiver};
    const std::span<const uint32_t> members = sent ? std::span<const uint32_t>(ends) : group;
    const auto mark = [&](bool value) {
      for (uint32_t k = 0; k < i.count; ++k) here[step.ranks[step.owner[step.sides[i.first + k]]]] = value;
    };
    mark(true);
    for (const uint32_t m : members) out[m] = out[m] || !here[m];
    mark(false);
  }
  for (uint32_t i = 0; i < step.ranks.size(); ++i) step.cut_off[i] = out[step.ranks[i]];
}

}  // namespace

void find_background(const Cluster& cluster, Step& step) {
  Background(cluster, step).find();
  find_cut_off(cluster, step);
}

void follow_ranks(Cluster& cluster, Step& step) {
  step.began.clear();
  for (uint32_t i = 0; i < step.ranks.size(); ++i) {
    RankInfo& info = cluster.ranks()[step.ranks[i]];
    const int64_t first = step.ops[step.begin[i]].start;
    // The gap before the first operation is known if the step before was seen.
    const bool follows = info.last_step + 1 == step.number && info.last_step >= 0;
    step.began.push_back(follows ? info.last_end : -1);
    const int64_t last = std::max(step.began[i] >= 0 ? step.began[i] : first, step.ended[i]);
    // The step time of a rank is the time between its last exits.
    RankStep out;
    out.rank = step.ranks[i];
    out.span = static_cast<float>(kMsPerNs * static_cast<double>(last - (follows ? info.last_end : first)));
    step.result.ranks.push_back(out);
    info.last_end = last;
    step.result.last_ns = std::max(step.result.last_ns, last);
    info.last_step = step.cut_off[i] ? -1 : step.number;
  }
}

void fill_gaps(Step& step) {
  std::vector<double> spans;
  for (uint32_t i = 0; i < step.ranks.size(); ++i) {
    Gaps(step, step.begin[i], step.begin[i + 1]).measure(step.began[i]);
    spans.push_back(step.result.ranks[i].span);
  }
  step.result.step_ms = spans.empty() ? 0 : quantile(spans, 0.9);
}

}  // namespace culprit::comm
