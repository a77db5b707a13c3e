// Names the ranks that cause a hang, from Flight Recorder dumps (DETECTORS.md section 1). A rank is named if
//
//   R1  its peers wait in an operation that the rank has not enqueued, while the rank waits for no other
//       rank: its process is stuck on the host
//   R2  it has not completed an operation that its peers completed: its device is stuck
//
// or if it called another operation than its peers under the same sequence number. A rank without a dump is
// also named if all other ranks of its group wait. The rules skip pipeline groups, whose ranks are never at
// the same place. If nothing distinguishes the ranks, none is named. Pure; accepts any dumps, also corrupt
// ones.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/detect/scene/scene.h"
#include "model/finding.h"
#include "model/flight.h"
#include "model/report.h"

namespace culprit::flight {

struct FlightAnswer {
  std::vector<Finding> findings;
  std::optional<Hang> hang;  // empty if no operation is open
  std::vector<std::string> missing;
  std::vector<Problem> problems;
  std::vector<scene::Statement> statements;  // what the rules prove
  std::vector<scene::Sight> sights;          // where each rank stands in each group; empty if none waits
};

// Place of a rank, as far as known.
struct RankPlace {
  std::optional<std::string> host;
  std::optional<uint32_t> device;
};
using PlaceOfRank = std::function<RankPlace(uint32_t rank)>;

// `dumps`: at most one per rank.
FlightAnswer analyse_flight(std::span<const FlightDump> dumps, const PlaceOfRank& place);

}  // namespace culprit::flight
