// Converts stacks to observations of ranks for the hang state (core/detect/hang): in a collective, in none,
// or stopped. A wait for the device gives none. Pure.
#pragma once

#include <vector>

#include "core/detect/hang/observation.h"
#include "core/detect/stacks/samples.h"

namespace culprit::stacks {

struct StackObservations {
  std::vector<hang::Observation> observations;
  std::vector<hang::RankExit> exits;  // ranks that did not answer the request for their stacks
};

StackObservations observations_of(const Samples& samples);

}  // namespace culprit::stacks
