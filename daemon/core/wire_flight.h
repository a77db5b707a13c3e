// A condensed Flight Recorder dump (core/detect/flight_condense.h) as bytes of a block of core/wire.h. Pure.
// Reading is for bytes of strangers: what it gives is consistent (indices are within their lists) and
// bounded, or the reader has failed.
#pragma once

#include <optional>
#include <string>

#include "core/logs/packed.h"
#include "model/flight.h"

namespace culprit::core {

// Nothing where it is larger than a block should be: groups without number.
std::optional<std::string> pack_flight(const FlightDump& dump);
FlightDump unpack_flight(PackedReader& in);

}  // namespace culprit::core
