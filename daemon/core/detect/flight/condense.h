// Reduces a dump to what the analysis needs: each group's open and last operations, with names and call
// sites. Reduces megabytes to kilobytes; analyse_flight() gives the same result for both. Pure.
#pragma once

#include "model/flight.h"

namespace culprit::flight {

FlightDump condense(const FlightDump& dump);

}  // namespace culprit::flight
