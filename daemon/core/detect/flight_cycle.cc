#include "core/detect/flight_cycle.h"

#include <algorithm>

namespace culprit::detect {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

// Whom a dump's rank waits for: of a group the one that is furthest behind, which holds up all the others.
struct Edge {
  uint32_t to = kNobody;
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
      if (at.waits() && last.enqueued < at.awaited() && out[at.dump].to == kNobody)
        out[at.dump] = {last.dump, &team, at.awaited()};
  }
  return out;
}

}  // namespace

std::vector<FlightWait> find_cycle(std::span<const FlightDump> dumps, std::span<const FlightTeam> teams) {
  const std::vector<Edge> edges = edges_of(dumps, teams);
  std::vector<uint32_t> walk(dumps.size(), kNobody);  // in which walk a dump was come by
  for (uint32_t first = 0; first < dumps.size(); ++first) {
    uint32_t at = first;
    while (at != kNobody && walk[at] == kNobody) {
      walk[at] = first;
      at = edges[at].to;
    }
    if (at == kNobody || walk[at] != first) continue;
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

}  // namespace culprit::detect
