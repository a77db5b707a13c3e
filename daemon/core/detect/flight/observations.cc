#include "core/detect/flight/observations.h"

#include <utility>

namespace culprit::flight {
namespace {

hang::Observation observation_of_dump(const FlightDump& dump, const PlaceOfRank& place) {
  hang::Observation out;
  out.source = hang::ObservationSource::kFlight;
  out.rank = dump.rank;
  if (place) {
    RankPlace at = place(dump.rank);
    out.host = std::move(at.host);
    out.device = at.device;
  }
  out.at_ns = dump.written_ns;
  return out;
}

// Sets the open call. `at_ns` becomes the operation's creation time if the file has no time or an earlier
// one; the wait then counts as 0.
void wait_in(const FlightDump& dump, const FlightOp& op, hang::Observation& observation) {
  observation.call.emplace();
  observation.call->op = dump.words[op.name];
  observation.call->seq = op.p2p ? -1 : op.seq;
  observation.call->started = op.state != FlightState::kScheduled;
  if (const auto& stack = dump.stacks[op.stack]; !stack.empty())
    observation.call->site = dump.words[stack[0]];
  if (op.created_ns == kNoTime) return;
  if (observation.at_ns == kNoTime || observation.at_ns < op.created_ns) observation.at_ns = op.created_ns;
  observation.waited_ns = observation.at_ns - op.created_ns;
}

const FlightOp* open_at(const FlightDump& dump, const GroupProgress& at) {
  for (const FlightOp& op : dump.ops)
    if (op.group == at.group && !op.p2p && !op.done && op.seq == at.awaited()) return &op;
  return nullptr;
}

}  // namespace

std::vector<hang::Observation> observations_of(const FlightView& view, const PlaceOfRank& place) {
  std::vector<hang::Observation> out;
  const std::span<const FlightDump> dumps = view.dumps();
  for (const FlightTeam& team : view.teams()) {
    for (const GroupProgress& at : team.progress) {
      const FlightDump& dump = dumps[at.dump];
      hang::Observation observation = observation_of_dump(dump, place);
      observation.group = {team.name, team.description, RankList(team.ranks),
                           static_cast<uint32_t>(team.ranks.size())};
      observation.enqueued = at.enqueued;
      observation.completed = at.completed;
      if (at.waits()) {
        if (const FlightOp* op = open_at(dump, at)) {
          wait_in(dump, *op, observation);
        } else {
          observation.call.emplace();
          observation.call->seq = at.awaited();
        }
        observation.evidence.host = observation.host;
        observation.evidence.rank = observation.rank;
        observation.evidence.file = dump.file;
        observation.evidence.text = "rank " + std::to_string(dump.rank) + " waits in " +
                                    (observation.call->op.empty() ? "an operation" : observation.call->op) +
                                    " #" + std::to_string(at.awaited()) + " of " + team.title();
        observation.evidence.time_ns = observation.at_ns;
      }
      out.push_back(std::move(observation));
    }
  }
  for (uint32_t d = 0; d < dumps.size(); ++d) {
    if (view.older(d)) continue;
    for (const FlightOp& op : dumps[d].ops) {
      if (op.done || !op.p2p) continue;
      hang::Observation observation = observation_of_dump(dumps[d], place);
      wait_in(dumps[d], op, observation);
      out.push_back(std::move(observation));
      break;
    }
  }
  return out;
}

}  // namespace culprit::flight
