// A condensed Flight Recorder dump (core/detect/flight_condense.h) as bytes of a block of core/wire.h. Pure.
// Reading is for bytes of strangers: what it gives is consistent (indices are within their lists) and
// bounded, or the reader has failed.
#pragma once

#include <optional>
#include <string>

#include "base/limits.h"
#include "core/logs/packed.h"
#include "model/flight.h"

namespace culprit::core {

// Nothing where it is larger than a block should be: groups without number.
std::optional<std::string> pack_flight(const FlightDump& dump);
// Ranks of all groups of a block's dumps: of a host with sixteen devices.
constexpr size_t kFlightRanksOfBlock = 16 * limits::kFlightRanks;
// `room`: what is left of those; what the dump's groups take goes off it.
FlightDump unpack_flight(PackedReader& in, size_t& room);

}  // namespace culprit::core
