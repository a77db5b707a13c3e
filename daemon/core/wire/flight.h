// Serialises a condensed Flight Recorder dump (core/detect/flight/condense.h) for a block of
// core/wire/inputs.h. Pure. Input is untrusted: a parsed dump is bounded and all its indices are valid, or
// the reader fails.
#pragma once

#include <optional>
#include <string>

#include "base/limits.h"
#include "core/logs/packed.h"
#include "model/flight.h"

namespace culprit::wire {

// Returns nothing if the dump exceeds the size of a block because of too many groups.
std::optional<std::string> pack_flight(const FlightDump& dump);
// Limit for the ranks in all groups of a block's dumps: as for a host with sixteen devices.
constexpr size_t kFlightRanksOfBlock = 16 * limits::kFlightRanks;
// `room`: the unused part of that limit; reduced by the ranks of this dump.
FlightDump unpack_flight(PackedReader& in, size_t& room);

}  // namespace culprit::wire
