#include "core/detect/hang/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "core/detect/hang/calls.h"
#include "core/detect/hang/watchdog_lines.h"

namespace culprit::hang {
namespace {

LoopSide side_of(const std::vector<const RankState*>& rank_states) {
  LoopSide out;
  out.call = *rank_states[0]->call;
  for (const RankState* entry : rank_states) out.ranks.push_back(*entry->rank);
  std::ranges::sort(out.ranks);
  return out;
}

bool is_default(const Group& group) { return group.of.key == "0" || group.of.description == "default_pg"; }

}  // namespace

std::optional<LoopAnswer> loop_answer(const LoopSide& a, const LoopSide& b, bool begun,
                                      const NameOfRank& name) {
  const bool swap = a.ranks.size() > b.ranks.size();
  const LoopSide& few = swap ? b : a;
  const LoopSide& many = swap ? a : b;
  const bool left = is_barrier(few.call);
  if (left == is_barrier(many.call) || few.ranks.empty() || few.ranks.size() == many.ranks.size() || !begun)
    return std::nullopt;
  LoopAnswer out{
      few.ranks, many.ranks, {}, "a rank that has fewer batches than its peers leaves the loop earlier"};
  if (!names_barrier((left ? few : many).call)) {
    out.why = "an all-reduce of one element may be a barrier: ranks with fewer batches come to it earlier";
    return out;
  }
  const bool one = few.ranks.size() == 1;
  std::string who = one && name ? name(few.ranks[0]) : shown_ranks(few.ranks);
  if (who[0] == 'r') who[0] = 'R';
  const std::string waits = fmt::format("{} in {}, {} {} in {}", one ? "it waits" : "they wait",
                                        shown_op(few.call), counted(many.ranks.size(), "rank"),
                                        many.ranks.size() == 1 ? "waits" : "wait", shown_op(many.call));
  out.title =
      left ? fmt::format("{} {} left {} loop: {}", who, one ? "has" : "have", one ? "its" : "their", waits)
           : fmt::format("{} {} still in {} loop: {} and left theirs", who, one ? "is" : "are",
                         one ? "its" : "their", waits);
  return out;
}

std::optional<std::pair<LoopSide, LoopSide>> stated_sides(const std::vector<Group>& groups,
                                                          ObservationSource source,
                                                          const std::vector<uint32_t>& ranks) {
  LoopSide odd, rest;
  std::set<uint32_t> seen;
  for (const Group& group : groups) {
    if (group.source != source) continue;
    for (const RankState& entry : group.rank_states) {
      if (!entry.rank || !entry.call || !entry.call->entered || !seen.insert(*entry.rank).second) continue;
      LoopSide& side = std::ranges::find(ranks, *entry.rank) != ranks.end() ? odd : rest;
      if (side.ranks.empty()) side.call = *entry.call;
      if (plain_op(side.call.op) != plain_op(entry.call->op)) return std::nullopt;
      side.ranks.push_back(*entry.rank);
    }
  }
  for (LoopSide* side : {&odd, &rest}) std::ranges::sort(side->ranks);
  return std::pair(std::move(odd), std::move(rest));
}

std::optional<LoopWait> divided_loop(const std::vector<Group>& groups) {
  constexpr size_t kMost = 3;  // peers per rank: the members of the other group are unknown
  std::map<std::pair<size_t, int64_t>, std::vector<const RankState*>> held;
  LoopWait out;
  for (size_t g = 0; g < groups.size(); ++g)
    for (const RankState& entry : groups[g].rank_states) {
      if (groups[g].source != ObservationSource::kWatchdog || !entry.call || !entry.call->entered) continue;
      if (!entry.rank || groups[g].of.key.empty() || entry.call->seq < 0) return std::nullopt;
      held[{g, entry.call->seq}].push_back(&entry);
      out.rank_states.push_back(&entry);
    }
  if (held.size() != 2 || held.begin()->first.first == held.rbegin()->first.first) return std::nullopt;
  out.few = side_of(held.begin()->second);
  out.many = side_of(held.rbegin()->second);
  out.of_few = &groups[held.begin()->first.first];
  out.of_many = &groups[held.rbegin()->first.first];
  if (out.few.ranks.size() > out.many.ranks.size()) {
    std::swap(out.few, out.many);
    std::swap(out.of_few, out.of_many);
  }
  const bool barrier = is_barrier(out.few.call);
  if (barrier == is_barrier(out.many.call) || !is_default(barrier ? *out.of_few : *out.of_many))
    return std::nullopt;
  const bool both = std::ranges::any_of(
      out.few.ranks, [&](uint32_t rank) { return std::ranges::binary_search(out.many.ranks, rank); });
  if (both || out.few.ranks.size() * kMost > out.many.ranks.size()) return std::nullopt;
  return out;
}

}  // namespace culprit::hang
