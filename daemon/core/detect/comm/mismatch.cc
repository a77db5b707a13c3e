#include "core/detect/comm/mismatch.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace culprit::comm {
namespace {

constexpr size_t kRetained = 64;
// Number of operations that ranks may enter after a mismatch, because they run in the background.
constexpr uint64_t kBehind = 2;

bool same_size_for_all(CommOp op) {
  return op == CommOp::kAllReduce || op == CommOp::kBroadcast || op == CommOp::kReduce;
}

// The call of a side: the operation, and the size if all ranks must use the same.
using Call = std::pair<CommOp, uint64_t>;
Call call_of(const Op& op) { return {op.op, same_size_for_all(op.op) ? op.bytes : 0}; }

}  // namespace

void find_mismatches(const Cluster& cluster, const Step& step, std::vector<Mismatch>& out) {
  for (const Instance& instance : step.instances) {
    const Channel& channel = cluster.channels()[instance.channel];
    if (channel.sender != kNone || instance.count < 2 || !instance.differs) continue;
    const Call first = call_of(step.ops[step.sides[instance.first]]);
    bool same = true;
    for (uint32_t k = 1; k < instance.count && same; ++k)
      same = call_of(step.ops[step.sides[instance.first + k]]) == first;
    if (same) continue;
    std::map<Call, std::vector<uint32_t>> calls;  // sides by call
    bool unknown = false;                         // some rank recorded no size
    for (uint32_t k = 0; k < instance.count; ++k) {
      const uint32_t side = step.sides[instance.first + k];
      const Call call = call_of(step.ops[side]);
      unknown = unknown || (same_size_for_all(call.first) && call.second == 0);
      calls[call].push_back(side);
    }
    const auto most = std::max_element(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    Mismatch found;
    found.step = step.number;
    found.comm = cluster.comms()[channel.comm].id;
    found.seq = step.ops[most->second[0]].seq;
    std::tie(found.most, found.bytes) = most->first;
    found.members = static_cast<uint32_t>(most->second.size());
    found.first_ns = INT64_MAX;
    for (const auto& [call, sides] : calls) {
      for (const uint32_t side : sides) found.first_ns = std::min(found.first_ns, step.ops[side].start);
      if (call == most->first || (unknown && call.first == found.most)) continue;
      std::tie(found.other, found.other_bytes) = call;
      for (const uint32_t side : sides) found.ranks.push_back(step.ranks[step.owner[side]]);
    }
    if (found.ranks.empty()) continue;
    if (found.ranks.size() == found.members)
      for (const uint32_t side : most->second) found.ranks.push_back(step.ranks[step.owner[side]]);
    std::sort(found.ranks.begin(), found.ranks.end(),
              [&](uint32_t a, uint32_t b) { return cluster.ranks()[a].rank < cluster.ranks()[b].rank; });
    keep_mismatch(std::move(found), out);
  }
}

void keep_mismatch(Mismatch found, std::vector<Mismatch>& out) {
  if (out.size() == kRetained) out.erase(out.begin());  // the newest may have stopped the job
  out.push_back(std::move(found));
}

const Mismatch* last_mismatch(const Cluster& cluster, const std::vector<Mismatch>& all) {
  for (const Mismatch& m : all) {
    const bool ended =
        std::none_of(cluster.ranks().begin(), cluster.ranks().end(), [&](const RankInfo& rank) {
          return std::any_of(rank.slots.begin(), rank.slots.end(), [&](const Slot& slot) {
            return slot.comm == m.comm && slot.peer == kNone && slot.entered > m.seq + 1 + kBehind;
          });
        });
    if (ended) return &m;
  }
  return nullptr;
}

}  // namespace culprit::comm
