// What stacks say of each rank, for the state of a hang (core/detect/hang): in which collective it is, that
// it is in none, or that it is stopped. A wait for the device says neither. Pure.
#pragma once

#include <vector>

#include "core/detect/hang/observation.h"
#include "core/detect/stacks/samples.h"

namespace culprit::stacks {

struct StackObservations {
  std::vector<hang::Observation> observations;
  std::vector<hang::RankExit> exits;  // ranks that were asked for their stacks and did not answer
};

StackObservations observations_of(const Samples& samples);

}  // namespace culprit::stacks
