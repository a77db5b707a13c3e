// What stacks say of each rank, for the scene of a hang (core/detect/scene): in which collective it is, that
// it is in none, or that it is stopped. A wait for the device says neither. Pure.
#pragma once

#include <vector>

#include "core/detect/scene/sight.h"
#include "core/detect/stacks/samples.h"

namespace culprit::stacks {

struct StackSights {
  std::vector<scene::Sight> sights;
  std::vector<scene::Departure> departures;  // ranks that were asked for their stacks and did not answer
};

StackSights sights_of(const Samples& samples);

}  // namespace culprit::stacks
