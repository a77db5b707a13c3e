#include "core/detect/flight/sights.h"

#include <utility>

namespace culprit::flight {
namespace {

scene::Sight sight_of_dump(const FlightDump& dump, const PlaceOfRank& place) {
  scene::Sight out;
  out.source = scene::SightSource::kFlight;
  out.rank = dump.rank;
  if (place) {
    RankPlace at = place(dump.rank);
    out.host = std::move(at.host);
    out.device = at.device;
  }
  out.at_ns = dump.written_ns;
  return out;
}

// `at_ns` stays the time of the operation where the file has none: then it waited no known time.
void wait_in(const FlightDump& dump, const FlightOp& op, scene::Sight& sight) {
  sight.call.emplace();
  sight.call->op = dump.words[op.name];
  sight.call->seq = op.p2p ? -1 : op.seq;
  sight.call->started = op.state != FlightState::kScheduled;
  if (const auto& stack = dump.stacks[op.stack]; !stack.empty()) sight.call->site = dump.words[stack[0]];
  if (op.created_ns == kNoTime) return;
  if (sight.at_ns == kNoTime || sight.at_ns < op.created_ns) sight.at_ns = op.created_ns;
  sight.waited_ns = sight.at_ns - op.created_ns;
}

const FlightOp* open_at(const FlightDump& dump, const Standing& at) {
  for (const FlightOp& op : dump.ops)
    if (op.group == at.group && !op.p2p && !op.done && op.seq == at.awaited()) return &op;
  return nullptr;
}

}  // namespace

std::vector<scene::Sight> sights_of(const FlightScene& scene, const PlaceOfRank& place) {
  std::vector<scene::Sight> out;
  const std::span<const FlightDump> dumps = scene.dumps();
  for (const FlightTeam& team : scene.teams()) {
    for (const Standing& at : team.standings) {
      const FlightDump& dump = dumps[at.dump];
      scene::Sight sight = sight_of_dump(dump, place);
      sight.group = {team.name, team.description, RankList(team.ranks),
                     static_cast<uint32_t>(team.ranks.size())};
      sight.enqueued = at.enqueued;
      sight.completed = at.completed;
      if (at.waits()) {
        if (const FlightOp* op = open_at(dump, at)) {
          wait_in(dump, *op, sight);
        } else {
          sight.call.emplace();
          sight.call->seq = at.awaited();
        }
        sight.evidence.host = sight.host;
        sight.evidence.rank = sight.rank;
        sight.evidence.file = dump.file;
        sight.evidence.text = "rank " + std::to_string(dump.rank) + " waits in " +
                              (sight.call->op.empty() ? "an operation" : sight.call->op) + " #" +
                              std::to_string(at.awaited()) + " of " + team.title();
        sight.evidence.time_ns = sight.at_ns;
      }
      out.push_back(std::move(sight));
    }
  }
  for (uint32_t d = 0; d < dumps.size(); ++d) {
    if (scene.older(d)) continue;
    for (const FlightOp& op : dumps[d].ops) {
      if (op.done || !op.p2p) continue;
      scene::Sight sight = sight_of_dump(dumps[d], place);
      wait_in(dumps[d], op, sight);
      out.push_back(std::move(sight));
      break;
    }
  }
  return out;
}

}  // namespace culprit::flight
