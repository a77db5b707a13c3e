// Ranks that wait for each other in a cycle. Each rank waits in a group for the next rank, which waits in
// another group. No process is stuck: the program calls its groups in different orders. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/detect/flight/teams.h"

namespace culprit::flight {

struct FlightWait {
  uint32_t rank = 0, for_rank = 0;
  std::string group, op;
  int64_t seq = 0;
};

// One cycle; empty if there is none. The standings of the teams tell where each rank waits.
std::vector<FlightWait> find_cycle(std::span<const FlightDump> dumps, std::span<const FlightTeam> teams);

}  // namespace culprit::flight
