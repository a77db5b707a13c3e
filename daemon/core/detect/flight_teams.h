// Process groups over all dumps of a job: who belongs to them, how far each rank came, who waits for whom.
// Shared by the rules of flight.cc. Borrows the dumps. Pure; the dumps may be anything.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/flight.h"

namespace culprit::detect {

// One rank in one group. Operations are numbered alike on all ranks; those up to `completed` are done.
struct Standing {
  uint32_t dump = 0, group = 0;  // indices: of the dump, and of the group in it
  int64_t enqueued = -1, completed = -1;
  bool waits() const { return completed < enqueued; }
  int64_t awaited() const { return completed + 1; }  // where it waits
};

struct FlightTeam {
  std::string name, description;
  std::vector<uint32_t> ranks;      // as groups were configured, or those with a standing
  std::vector<Standing> standings;  // of dumps that tell one
  bool pipeline = false;            // its ranks are never at the same place: left out of the rules
  bool mixed = false;               // it carries sends and receives too: its counters tell nothing
  std::string title() const { return description.empty() ? "group " + name : description; }
};

// In order of names. Dumps that say nothing at all of a group have no standing in it.
std::vector<FlightTeam> teams_of(std::span<const FlightDump> dumps);

// The name of a team's operation, of whichever dump has it; "operation" where none does.
std::string op_name(std::span<const FlightDump> dumps, const FlightTeam& team, int64_t seq);
// No rank leaves it before all have entered.
bool synchronises(std::string_view op);
// "recv 0<-3": the peer's global rank.
std::optional<uint32_t> source_of_recv(const FlightDump& dump, const FlightOp& op);

}  // namespace culprit::detect
