// What of a dump the analysis needs: each group's operations under way and its last ones, what they are
// called and where they were called. Kilobytes of megabytes; flight.h says the same of it. Pure.
#pragma once

#include "model/flight.h"

namespace culprit::detect {

FlightDump condense(const FlightDump& dump);

}  // namespace culprit::detect
