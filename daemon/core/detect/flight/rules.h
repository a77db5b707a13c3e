// The rules that name ranks (flight.h): R1, R2, differing calls, and fallbacks. Each rule returns accused
// ranks with a sentence; empty if nothing distinguishes the ranks. Pure.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/detect/flight/view.h"

namespace culprit::flight {

struct FlightAccused {
  std::string why;
  double score = 0;
};
using FlightAccusations = std::map<uint32_t, FlightAccused>;  // by rank

// "ranks 3, 5 and 2 more".
std::string rank_list(const std::set<uint32_t>& ranks);

// Ranks that called a different operation than their peers under one sequence number.
FlightAccusations find_mismatches(const FlightView& view);
// R2: ranks that have not completed an operation that their peers completed. `many`: set to the reason if too
// many ranks qualify.
FlightAccusations find_stuck_devices(const FlightView& view, std::string& many);
// R1: ranks without an open operation for which other ranks wait. `sends`: ranks with only sends open count
// too, because a send may wait for a receive that no rank has posted.
FlightAccusations find_stuck_hosts(const FlightView& view, bool sends, std::string& many);
// For pipelines in which all open operations are receives: names the expected sender without an open
// operation.
FlightAccusations find_silent_sources(const FlightView& view);
// Members of the team without a dump.
std::set<uint32_t> absent_of(const FlightView& view, const FlightTeam& team);

}  // namespace culprit::flight
