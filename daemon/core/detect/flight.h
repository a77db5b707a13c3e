// Which ranks a hang is due to, by Flight Recorder dumps (DETECTORS.md section 1). A rank is named
//
//   R1  where peers wait in an operation that it has not enqueued, while it waits for no other rank: its
//       process is stuck on the host
//   R2  where it has not completed an operation that its peers have: its device is stuck
//
// or where it called another operation than its peers under the same number, or left no dump while all the
// others of its group wait. Pipeline groups are left out of the rules: their ranks are never at the same
// place. Nobody is named where nothing tells ranks apart. Pure; the dumps may be anything.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/flight.h"
#include "model/report.h"

namespace culprit::detect {

struct FlightAnswer {
  std::vector<Finding> findings;
  std::optional<Hang> hang;  // nothing where no operation is under way
  std::vector<std::string> missing;
  std::vector<Problem> problems;
};

// Where a rank runs, as far as that is known.
struct RankPlace {
  std::optional<std::string> host;
  std::optional<uint32_t> device;
};
using PlaceOfRank = std::function<RankPlace(uint32_t rank)>;

// One dump a rank at most.
FlightAnswer analyse_flight(std::span<const FlightDump> dumps, const PlaceOfRank& place);

}  // namespace culprit::detect
