// What a RasState says, as sights and departures of the scene (core/detect/scene). Only communicators whose
// counts stand still give sights: those of a running job prove nothing. Pure; any thread.
#pragma once

#include <vector>

#include "core/detect/ras/judge.h"
#include "core/detect/scene/sight.h"
#include "model/ras.h"

namespace culprit::ras {

struct RasSights {
  std::vector<scene::Sight> sights;
  std::vector<scene::Departure> departures;
};

// A rank that launched the most operations of a function waits in the last one. Ranks of the largest group,
// which a state does not list, are named if all members of the communicator are known.
RasSights sights_of(const RasState& state, const RasContext& context);

}  // namespace culprit::ras
