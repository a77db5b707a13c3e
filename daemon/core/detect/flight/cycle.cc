#include "core/detect/flight/cycle.h"

#include <algorithm>

namespace culprit::flight {
namespace {

constexpr uint32_t kNoRank = UINT32_MAX;

// The rank that a dump's rank waits for: the furthest behind of a group, which delays all others.
struct Edge {
  uint32_t to = kNoRank;
  const FlightTeam* team = nullptr;
  int64_t seq = 0;
};

std::vector<Edge> edges_of(std::span<const FlightDump> dumps, std::span<const FlightTeam> teams) {
  std::vector<Edge> out(dumps.size());
  for (const FlightTeam& team : teams) {
    if (team.standings.empty()) continue;
    const Standing& last =
        *std::min_element(team.standings.begin(), team.standings.end(),
                          [](const Standing& a, const Standing& b) { return a.enqueued < b.enqueued; });
    for (const Standing& at : team.standings)
      if (at.waits() && last.enqueued < at.awaited() && out[at.dump].to == kNoRank)
        out[at.dump] = {last.dump, &team, at.awaited()};
  }
  return out;
}

}  // namespace

std::vector<FlightWait> find_cycle(std::span<const FlightDump> dumps, std::span<const FlightTeam> teams) {
  const std::vector<Edge> edges = edges_of(dumps, teams);
  std::vector<uint32_t> walk(dumps.size(), kNoRank);  // number of the walk that reached a dump
  for (uint32_t first = 0; first < dumps.size(); ++first) {
    uint32_t at = first;
    while (at != kNoRank && walk[at] == kNoRank) {
      walk[at] = first;
      at = edges[at].to;
    }
    if (at == kNoRank || walk[at] != first) continue;
    std::vector<FlightWait> out;
    const uint32_t begin = at;
    do {
      const Edge& edge = edges[at];
      out.push_back({dumps[at].rank, dumps[edge.to].rank, edge.team->title(),
                     op_name(dumps, *edge.team, edge.seq), edge.seq});
      at = edge.to;
    } while (at != begin);
    return out;
  }
  return {};
}

}  // namespace culprit::flight
