// What of a dump the analysis needs: each group's operations under way and its last ones, what they are
// called and where they were called. Some kilobytes of a dump of megabytes; flight.h says the same of both. Pure.
#pragma once

#include "model/flight.h"

namespace culprit::detect {

FlightDump condense(const FlightDump& dump);

}  // namespace culprit::detect
