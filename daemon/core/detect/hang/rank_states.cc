#include "core/detect/hang/rank_states.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace culprit::hang {
namespace {

void join(const ObservedCall& more, ObservedCall& call) {
  if (call.op.empty()) call.op = more.op;
  if (!call.in) call.in = more.in;
  if (!call.out) call.out = more.out;
  if (call.sizes.empty()) call.sizes = more.sizes;
  if (call.site.empty()) call.site = more.site;
}

size_t group_in(std::vector<Group>& groups, const ObservedGroup& of, ObservationSource source) {
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].source != source) continue;
    ObservedGroup& known = groups[i].of;
    const bool same = known.members == of.members || known.members.empty() || of.members.empty();
    if (known.key != of.key || !same) continue;
    if (known.description.empty()) known.description = of.description;
    if (known.members.empty()) known.members = of.members;
    known.size = std::max(known.size, of.size);
    return i;
  }
  groups.push_back({source, of, {}});
  return groups.size() - 1;
}

// The group rank in the default group is the global rank. Older wordings name only the default group.
std::optional<uint32_t> global_rank(const ObservedGroup& group, std::optional<uint32_t> in_group) {
  if (!in_group) return std::nullopt;
  if (!group.members.empty()) return group.members.at(*in_group);
  return group.key.empty() || group.key == "0" ? in_group : std::nullopt;
}

// Ranks of one group are never so far apart: an isolated number is uninitialised memory; one with another
// rank near it is real.
void drop_stray_numbers(Group& group) {
  constexpr int64_t kFar = 1'000'000;
  const auto number_of = [](const RankState& entry) {
    return entry.call && entry.call->seq >= 0 ? entry.call->seq : entry.enqueued;
  };
  std::vector<int64_t> all;
  for (const RankState& entry : group.rank_states)
    if (number_of(entry) >= 0) all.push_back(number_of(entry));
  std::ranges::sort(all);
  if (all.size() < 2 || all.back() - all.front() <= kFar) return;
  for (RankState& entry : group.rank_states) {
    const int64_t own = number_of(entry);
    if (own < 0) continue;
    const auto at = std::ranges::lower_bound(all, own);
    const bool below = at != all.begin() && own - *std::prev(at) <= kFar;
    const bool above = std::next(at) != all.end() && *std::next(at) - own <= kFar;
    if (below || above) continue;
    if (entry.call) entry.call->seq = -1;
    entry.enqueued = entry.completed = -1;
    entry.counted = false;
  }
}

}  // namespace

std::vector<Group> groups_of(const std::vector<Observation>& observations) {
  constexpr uint64_t kOfGroup = uint64_t{1} << 32;
  std::vector<Group> out;
  std::map<std::pair<size_t, uint64_t>, size_t> places;
  for (const Observation& observation : observations) {
    const size_t of = group_in(out, observation.group, observation.source);
    Group& group = out[of];
    const auto rank = observation.rank ? observation.rank : global_rank(group.of, observation.group_rank);
    size_t at = group.rank_states.size();
    if (rank || observation.group_rank) {
      const uint64_t id = rank ? *rank : kOfGroup | *observation.group_rank;
      at = places.try_emplace({of, id}, at).first->second;
    }
    if (at == group.rank_states.size()) {
      group.rank_states.emplace_back();
      group.rank_states[at].rank = rank;
    }
    group.rank_states[at].add(observation, static_cast<uint32_t>(&observation - observations.data()));
  }
  for (Group& group : out)
    if (group.source == ObservationSource::kWatchdog) drop_stray_numbers(group);
  return out;
}

void RankState::add(const Observation& observation, uint32_t at) {
  if (observation.enqueued) enqueued = std::max(enqueued, *observation.enqueued), counted = true;
  if (observation.completed) completed = std::max(completed, *observation.completed);
  if (observation.call && observation.call->entered) {
    const bool earlier =
        !call || call->seq < 0 || (observation.call->seq >= 0 && observation.call->seq < call->seq);
    if (earlier) order = at;
    if (earlier)
      call = observation.call;
    else if (observation.call->seq == call->seq)
      join(*observation.call, *call);
    enqueued = std::max(enqueued, observation.call->seq);
    waited_ns = std::max(waited_ns, observation.waited_ns);
    if (observation.at_ns != kNoTime && observation.waited_ns > 0 &&
        (since_ns == kNoTime || observation.at_ns - observation.waited_ns < since_ns))
      since_ns = observation.at_ns - observation.waited_ns;
  }
  if (observation.state != ObservedState::kUnknown) state = observation.state, doing = observation.doing;
  if (!evidence && !observation.evidence.text.empty()) evidence = &observation.evidence;
}

}  // namespace culprit::hang
