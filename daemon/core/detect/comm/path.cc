#include <algorithm>
#include <cmath>

#include "core/detect/comm/network.h"

namespace culprit::comm {
namespace {

class Walk {
 public:
  Walk(const Cluster& cluster, Step& step) : cluster_(cluster), step_(step) {
    on_path_.assign(step.channels.size(), 0);
  }

  std::vector<double> run() {
    uint32_t at = last_operation();
    bool waited = true;  // whether the walk follows the end of `at`, not only its start
    for (size_t hops = 0; at != kNone && hops < step_.ops.size(); ++hops) {
      if (waited) at = last_to_arrive(at);
      const Op& op = step_.ops[at];
      if (!std::isnan(op.excess_ms) && op.waited_for == kNone) {
        RankStep& rank = step_.result.ranks[step_.owner[at]];
        rank.path += op.excess_ms;
      }
      at = op.waited_for != kNone ? op.waited_for : op.before;
      waited = op.waited_for == kNone && (at == kNone || !step_.ops[at].background || at == op.awaited);
    }
    return std::move(on_path_);
  }

 private:
  uint32_t last_operation() const {
    uint32_t out = kNone;
    int64_t latest = 0;
    for (uint32_t i = 0; i + 1 < step_.begin.size(); ++i)
      for (uint32_t k = step_.begin[i]; k < step_.begin[i + 1]; ++k) {
        if (!step_.ops[k].finished) continue;
        const int64_t end = step_.aligned(k, step_.ops[k].end);
        if (out == kNone || end > latest) out = k, latest = end;
      }
    return out;
  }

  // Time for which side `k` waited for side `other` of its operation.
  double wait_ms(const Instance& instance, uint32_t k, uint32_t other) const {
    const Op &mine = step_.ops[k], &theirs = step_.ops[other];
    const auto span = static_cast<double>(mine.end - mine.start) * kMsPerNs;
    // All sides leave together, so the durations give the order of entry without comparing clocks.
    if (is_synchronising(instance.op))
      return span - static_cast<double>(theirs.end - theirs.start) * kMsPerNs;
    const int64_t came = step_.aligned(other, theirs.start);
    if (came > step_.aligned(k, mine.end)) return 0;  // side `k` had left before `other` entered
    return static_cast<double>(came - step_.aligned(k, mine.start)) * kMsPerNs;
  }

  // The last side to arrive, over all operations in the launch of `at`.
  uint32_t last_to_arrive(uint32_t at) {
    const uint32_t owner = step_.owner[at], first = step_.ops[at].launch;
    uint32_t end = at + 1;
    while (end < step_.begin[owner + 1] && step_.ops[end].launch == first) ++end;
    uint32_t best = kNone, via = at;
    double most = kTogetherMs;
    for (uint32_t k = first; k < end; ++k) {
      const Instance& instance = step_.instances[step_.ops[k].instance];
      for (uint32_t s = 0; s < instance.count; ++s) {
        const uint32_t side = step_.sides[instance.first + s];
        if (side == k || !step_.ops[side].finished) continue;
        if (const double wait = wait_ms(instance, k, side); wait > most) best = side, via = k, most = wait;
      }
    }
    const Instance& instance = step_.instances[step_.ops[via].instance];
    on_path_[instance.local] += instance.slower_ms;
    step_.result.network_path_ms += instance.slower_ms;
    if (best == kNone) return first;
    // Report only waits that matter, not every hand-over in a pipeline.
    auto& chain = step_.result.chain;
    if (most > 0.002 * step_.result.step_ms && chain.size() < kChainLinks)
      chain.push_back({cluster_.ranks()[step_.ranks[owner]].rank, std::string(to_string(step_.ops[via].op)),
                       cluster_.comms()[cluster_.channels()[instance.channel].comm].id, step_.ops[via].seq,
                       most});
    return best;
  }

  const Cluster& cluster_;
  Step& step_;
  std::vector<double> on_path_;
};

}  // namespace

std::vector<double> walk_path(const Cluster& cluster, Step& step) { return Walk(cluster, step).run(); }

}  // namespace culprit::comm
