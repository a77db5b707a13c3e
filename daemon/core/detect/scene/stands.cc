#include "core/detect/scene/stands.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace culprit::scene {
namespace {

void join(const SightCall& more, SightCall& call) {
  if (call.op.empty()) call.op = more.op;
  if (!call.in) call.in = more.in;
  if (!call.out) call.out = more.out;
  if (call.sizes.empty()) call.sizes = more.sizes;
  if (call.site.empty()) call.site = more.site;
}

size_t group_in(std::vector<Group>& groups, const SightGroup& of, SightSource source) {
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].source != source) continue;
    SightGroup& known = groups[i].of;
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

// The rank in the default group is the global one; older wordings name no other group.
std::optional<uint32_t> global_rank(const SightGroup& group, std::optional<uint32_t> in_group) {
  if (!in_group) return std::nullopt;
  if (!group.members.empty()) return group.members.at(*in_group);
  return group.key.empty() || group.key == "0" ? in_group : std::nullopt;
}

// Ranks of one group are never so far apart: such a number is memory that nothing was written to, unless
// another rank is near it.
void drop_stray_numbers(Group& group) {
  constexpr int64_t kFar = 1'000'000;
  const auto number_of = [](const Stand& stand) {
    return stand.call && stand.call->seq >= 0 ? stand.call->seq : stand.enqueued;
  };
  std::vector<int64_t> all;
  for (const Stand& stand : group.stands)
    if (number_of(stand) >= 0) all.push_back(number_of(stand));
  std::ranges::sort(all);
  if (all.size() < 2 || all.back() - all.front() <= kFar) return;
  for (Stand& stand : group.stands) {
    const int64_t own = number_of(stand);
    if (own < 0) continue;
    const auto at = std::ranges::lower_bound(all, own);
    const bool below = at != all.begin() && own - *std::prev(at) <= kFar;
    const bool above = std::next(at) != all.end() && *std::next(at) - own <= kFar;
    if (below || above) continue;
    if (stand.call) stand.call->seq = -1;
    stand.enqueued = stand.completed = -1;
    stand.counted = false;
  }
}

}  // namespace

std::vector<Group> groups_of(const std::vector<Sight>& sights) {
  constexpr uint64_t kOfGroup = uint64_t{1} << 32;
  std::vector<Group> out;
  std::map<std::pair<size_t, uint64_t>, size_t> places;
  for (const Sight& sight : sights) {
    const size_t of = group_in(out, sight.group, sight.source);
    Group& group = out[of];
    const auto rank = sight.rank ? sight.rank : global_rank(group.of, sight.group_rank);
    size_t at = group.stands.size();
    if (rank || sight.group_rank) {
      const uint64_t id = rank ? *rank : kOfGroup | *sight.group_rank;
      at = places.try_emplace({of, id}, at).first->second;
    }
    if (at == group.stands.size()) {
      group.stands.emplace_back();
      group.stands[at].rank = rank;
    }
    group.stands[at].add(sight, static_cast<uint32_t>(&sight - sights.data()));
  }
  for (Group& group : out)
    if (group.source == SightSource::kWatchdog) drop_stray_numbers(group);
  return out;
}

void Stand::add(const Sight& sight, uint32_t at) {
  if (sight.enqueued) enqueued = std::max(enqueued, *sight.enqueued), counted = true;
  if (sight.completed) completed = std::max(completed, *sight.completed);
  if (sight.call && sight.call->entered) {
    const bool earlier = !call || call->seq < 0 || (sight.call->seq >= 0 && sight.call->seq < call->seq);
    if (earlier) order = at;
    if (earlier)
      call = sight.call;
    else if (sight.call->seq == call->seq)
      join(*sight.call, *call);
    enqueued = std::max(enqueued, sight.call->seq);
    waited_ns = std::max(waited_ns, sight.waited_ns);
    if (sight.at_ns != kNoTime && sight.waited_ns > 0 &&
        (since_ns == kNoTime || sight.at_ns - sight.waited_ns < since_ns))
      since_ns = sight.at_ns - sight.waited_ns;
  }
  if (sight.state != SightState::kUnknown) state = sight.state, doing = sight.doing;
  if (!evidence && !sight.evidence.text.empty()) evidence = &sight.evidence;
}

}  // namespace culprit::scene
