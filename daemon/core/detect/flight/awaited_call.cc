#include "core/detect/flight/awaited_call.h"

#include <map>
#include <set>
#include <tuple>

namespace culprit::flight {
namespace {

struct Awaited {
  const FlightTeam* team = nullptr;
  int64_t seq = -1;
  size_t late = 0;     // accused ranks that have not entered or finished it
  size_t waiting = 0;  // other ranks
};

// The operation in which most ranks of the team wait, without accused ranks.
Awaited awaited_in(const FlightView& view, const FlightTeam& team, const FlightAccusations& accused) {
  const auto rank_of = [&](const GroupProgress& at) { return view.dumps()[at.dump].rank; };
  std::map<int64_t, size_t> waiting;  // by number
  for (const GroupProgress& at : team.progress)
    if (at.waits() && !accused.contains(rank_of(at))) ++waiting[at.awaited()];
  Awaited out;
  for (const auto& [seq, ranks] : waiting)
    if (ranks > out.waiting) out = {&team, seq, 0, ranks};
  if (!out.team) return out;
  std::set<uint32_t> entered;
  for (const GroupProgress& at : team.progress)
    if (at.enqueued >= out.seq && !(at.waits() && at.awaited() == out.seq)) entered.insert(rank_of(at));
  for (const uint32_t rank : team.ranks) out.late += accused.contains(rank) && !entered.contains(rank);
  return out;
}

}  // namespace

std::optional<AwaitedCall> awaited_call(const FlightView& view, const FlightAccusations& accused) {
  Awaited best;
  for (const FlightTeam& team : view.teams()) {
    const Awaited one = awaited_in(view, team, accused);
    if (one.team && std::tuple(one.late, one.waiting) > std::tuple(best.late, best.waiting)) best = one;
  }
  if (!best.team) return std::nullopt;
  return AwaitedCall{op_name(view.dumps(), *best.team, best.seq), best.seq,
                     best.team->description.empty() ? best.team->name : best.team->description};
}

}  // namespace culprit::flight
