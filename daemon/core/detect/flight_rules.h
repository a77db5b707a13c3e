// The rules that name ranks (flight.h): R1 and R2, calls that differ, and what is left where these say
// nothing. Each gives whom it names with a sentence; nobody where nothing tells ranks apart. Pure.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/detect/flight_scene.h"

namespace culprit::detect {

struct FlightAccused {
  std::string why;
  double score = 0;
};
using FlightAccusations = std::map<uint32_t, FlightAccused>;  // by rank

// "ranks 3, 5 and 2 more".
std::string rank_list(const std::set<uint32_t>& ranks);

// Who called another operation than its peers under the same number.
FlightAccusations find_mismatches(const FlightScene& scene);
// R2: who has not completed what its peers have. `many`: why nobody is named where many could be.
FlightAccusations find_stuck_devices(const FlightScene& scene, std::string& many);
// R1: whom others wait for, of those that have nothing under way; `sends`: but sends, which nobody may have
// asked for yet.
FlightAccusations find_stuck_hosts(const FlightScene& scene, bool sends, std::string& many);
// In a pipeline nothing but receives may be under way: then the rank that should send and has nothing under
// way itself.
FlightAccusations find_silent_sources(const FlightScene& scene);
// Where all that are there wait in the same operation, the absent are suspected.
FlightAccusations find_absent(const FlightScene& scene);
// Members of the team that left no dump.
std::set<uint32_t> absent_of(const FlightScene& scene, const FlightTeam& team);

}  // namespace culprit::detect
