// What a RasState says, as observations and exits of the hang state (core/detect/hang). Only communicators
// whose counts stand still give observations: those of a running job prove nothing. Pure; any thread.
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

// A rank that launched the most operations of a function waits in the last one. Ranks of the largest group,
// which a state does not list, are named if all members of the communicator are known.
RasObservations observations_of(const RasState& state, const RasContext& context);

}  // namespace culprit::ras
