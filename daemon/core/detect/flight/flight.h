// Names the ranks that cause a hang, from Flight Recorder dumps (docs/detectors.md). A rank is named if
//
//   R1  its peers wait in an operation that the rank has not enqueued, while the rank waits for no other
//       rank: its process is stuck on the host
//   R2  it has not completed an operation that its peers completed: its device is stuck
//
// or if it called a different operation than its peers under one sequence number. The rules skip pipeline
// groups, whose ranks are never at the same operation. If nothing distinguishes the ranks, none is named. The
// hang state of all sources (core/detect/hang) handles ranks without a dump and circular waits. Pure; accepts
// any dumps, including corrupt ones.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/detect/hang/judge.h"
#include "model/finding.h"
#include "model/flight.h"
#include "model/rank_place.h"
#include "model/report.h"

namespace culprit::flight {

struct FlightAnswer {
  // whether an operation is open; if false, only problems are set
  bool waits = false;
  TimeNs since_ns = kNoTime;                    // when the first open operation was created
  std::vector<hang::HangClaim> claims;          // what the rules prove
  std::vector<hang::Observation> observations;  // progress of each rank in each group
  std::optional<Finding> no_rank;               // set if ranks wait but no rule names a rank
  std::vector<StackCluster> clusters;           // all ranks, clustered by their call, largest first
  std::vector<std::string> missing;
  std::vector<Problem> problems;
};

// `dumps`: at most one per rank.
FlightAnswer analyse_flight(std::span<const FlightDump> dumps, const PlaceOfRank& place);

}  // namespace culprit::flight
