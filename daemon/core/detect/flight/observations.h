// Progress of each rank in the dumps, as observations for the hang state of all sources (core/detect/hang):
// the last sequence numbers and the open operation in each group. Pure.
#pragma once

#include <vector>

#include "core/detect/flight/flight.h"
#include "core/detect/flight/view.h"
#include "core/detect/hang/observation.h"

namespace culprit::flight {

// Open sends and receives are waits without a group, because sequence numbers of pairs differ between ranks.
std::vector<hang::Observation> observations_of(const FlightView& view, const PlaceOfRank& place);

}  // namespace culprit::flight
