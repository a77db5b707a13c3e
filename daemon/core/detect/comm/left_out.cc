#include "core/detect/comm/left_out.h"

#include <algorithm>
#include <vector>

namespace culprit::comm {
namespace {

constexpr uint32_t kLasts = 3;      // steps: a label is late for at most one step
constexpr size_t kFollowed = 1024;  // ranks that may be behind at the same time
constexpr uint32_t kCompared = 16;  // channels per step: lost records make more of them incomplete

}  // namespace

void LeftOutWatch::add(const Cluster& cluster, const Step& step) {
  std::vector<bool> partial(step.channels.size()), whole(step.channels.size());
  for (const Instance& i : step.instances) {
    const Channel& channel = cluster.channels()[i.channel];
    if (channel.sender != kNone || i.count == 0) continue;
    const bool all = i.count == cluster.comms()[channel.comm].members.size();
    (all ? whole : partial)[i.local] = true;
  }
  uint32_t compared = 0;
  for (uint32_t c = 0; c < step.channels.size(); ++c) {
    const uint32_t channel = step.channels[c];
    if (partial[c] && aligned_.contains(channel)) {
      if (compared++ < kCompared) compare(cluster, step, channel);
    } else if (whole[c] && !partial[c]) {
      aligned_.insert(channel);
      std::erase_if(behind_, [&](const auto& one) { return one.first.first == channel; });
    }
  }
}

void LeftOutWatch::compare(const Cluster& cluster, const Step& step, uint32_t channel) {
  std::map<uint32_t, const Op*> first;  // by rank index: its first operation in the channel
  for (const Instance& i : step.instances) {
    if (i.channel != channel) continue;
    for (uint32_t k = 0; k < i.count; ++k) {
      const uint32_t side = step.sides[i.first + k];
      const Op*& op = first[step.ranks[step.owner[side]]];
      if (!op || step.ops[side].seq < op->seq) op = &step.ops[side];
    }
  }
  std::map<uint64_t, uint32_t> counts;  // number of ranks by first sequence number
  for (const auto& [rank, op] : first) ++counts[op->seq];
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  // With two ranks, either may have skipped an operation.
  const bool clear = most != counts.end() && most->second >= 2 && 2 * most->second > first.size();
  for (const auto& [rank, op] : first) {
    const std::pair key(channel, rank);
    if (!clear || op->seq >= most->first) {
      if (clear) behind_.erase(key);
      continue;
    }
    const uint64_t count = most->first - op->seq;
    const auto known = behind_.find(key);
    if (known != behind_.end() && known->second.what.count == count) {
      ++known->second.steps;
    } else if (behind_.size() < kFollowed) {
      const CommInfo& comm = cluster.comms()[cluster.channels()[channel].comm];
      behind_[key] = {{step.number - 1, comm.id, rank, most->second, count, op->op}, 1};
    }
  }
}

std::optional<LeftOut> LeftOutWatch::find() const {
  const Behind* first = nullptr;
  for (const auto& [key, behind] : behind_)
    if (behind.steps >= kLasts && (!first || behind.what.step < first->what.step)) first = &behind;
  return first ? std::optional(first->what) : std::nullopt;
}

}  // namespace culprit::comm
