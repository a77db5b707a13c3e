// Where each rank of the dumps stands, as observations of the hang state of all sources (core/detect/hang):
// in each group the last numbers and the operation that is open. Pure.
#pragma once

#include <vector>

#include "core/detect/flight/flight.h"
#include "core/detect/flight/view.h"
#include "core/detect/hang/observation.h"

namespace culprit::flight {

// A send or receive that is open is a wait in no group: the numbers of pairs are not the same on all ranks.
std::vector<hang::Observation> observations_of(const FlightView& view, const PlaceOfRank& place);

}  // namespace culprit::flight
