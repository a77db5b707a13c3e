// Where each rank of the dumps stands, as sights of the scene of all sources (core/detect/scene): in each
// group the last numbers and the operation that is open. Pure.
#pragma once

#include <vector>

#include "core/detect/flight/flight.h"
#include "core/detect/flight/scene.h"
#include "core/detect/scene/sight.h"

namespace culprit::flight {

// A send or receive that is open is a wait in no group: the numbers of pairs are not the same on all ranks.
std::vector<scene::Sight> sights_of(const FlightScene& scene, const PlaceOfRank& place);

}  // namespace culprit::flight
