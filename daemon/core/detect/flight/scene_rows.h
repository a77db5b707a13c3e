// The scene of a hang from dumps: the operation in which most ranks wait, and the last operation of each
// rank. Pure.
#pragma once

#include "core/detect/flight/scene.h"
#include "core/detect/scene/sentence.h"
#include "model/report.h"

namespace culprit::flight {

// Sets op, seq, group, waiting and scene. `hang.waited_for` is set: the operation is one that they did not
// enter, where there is one.
void add_scene(const FlightScene& scene, Hang& hang);

}  // namespace culprit::flight
