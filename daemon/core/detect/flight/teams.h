// Process groups over all dumps of a job: members, progress of each rank, and waits. Shared by the rules.
// Borrows the dumps. Pure; accepts any dumps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/flight.h"

namespace culprit::flight {

// Progress of one rank in one group. Sequence numbers are equal on all ranks; operations up to `completed`
// are done.
struct GroupProgress {
  uint32_t dump = 0, group = 0;  // indices: the dump, and the group within it
  int64_t enqueued = -1, completed = -1;
  bool waits() const { return completed < enqueued; }
  int64_t awaited() const { return completed + 1; }  // sequence number of the operation in which it waits
};

struct FlightTeam {
  std::string name, description;
  std::vector<uint32_t> ranks;          // as configured, else ranks with progress in the group
  std::vector<GroupProgress> progress;  // from dumps with information on the group
  bool pipeline = false;                // its ranks are never at the same operation, so the rules skip it
  bool mixed = false;                   // it also has sends and receives, so its counters are not comparable
  std::string title() const { return description.empty() ? "group " + name : description; }
};

// Ordered by name. A dump without information on a group has no entry in its `progress`.
std::vector<FlightTeam> teams_of(std::span<const FlightDump> dumps);

// Name of a team's operation from any dump that has it; "operation" if none has.
std::string op_name(std::span<const FlightDump> dumps, const FlightTeam& team, int64_t seq);
// Whether the operation can only end after all ranks have entered it.
bool synchronises(std::string_view op);
// Global rank of the peer in "recv 0<-3".
std::optional<uint32_t> source_of_recv(const FlightDump& dump, const FlightOp& op);

}  // namespace culprit::flight
