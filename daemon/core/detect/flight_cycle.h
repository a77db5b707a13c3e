// Ranks that wait for each other: each in a group in which the next one has not come yet, since that waits in
// another group itself, round to the first. No process is stuck then; the program calls its groups in
// different orders. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/detect/flight_teams.h"

namespace culprit::detect {

struct FlightWait {
  uint32_t rank = 0, for_rank = 0;
  std::string group, op;
  int64_t seq = 0;
};

// One such round; empty where there is none. Each rank's own waits come from the teams' standings.
std::vector<FlightWait> find_cycle(std::span<const FlightDump> dumps, std::span<const FlightTeam> teams);

}  // namespace culprit::detect
