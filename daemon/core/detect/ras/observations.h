// Converts a RasState to observations and exits for the hang state (core/detect/hang). Only communicators
// with unchanged counts give observations: those of a running job prove nothing. Pure; any thread.
#pragma once

#include <vector>

#include "core/detect/hang/observation.h"
#include "core/detect/ras/judge.h"
#include "model/ras.h"

namespace culprit::ras {

struct RasObservations {
  std::vector<hang::Observation> observations;
  std::vector<hang::RankExit> exits;
};

// The rank with the highest launch count of a function waits in the last launch. A state does not list the
// ranks of its largest group; they are named if all members of the communicator are known.
RasObservations observations_of(const RasState& state, const RasContext& context);

}  // namespace culprit::ras
