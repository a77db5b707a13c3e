// The sights of a job's logs: each line of a watchdog read alone (watchdog_lines.h), then joined by its
// writer. A watchdog prints an operation, its group and the group's numbers in different lines. Pure.
#pragma once

#include <functional>

#include "core/detect/logs/view.h"
#include "core/detect/scene/scene.h"

namespace culprit::scene {

// Reads the kept lines of rules for which `wanted` holds, without those before `after`. Sets all of the input
// but `world` and `iterated`.
SceneInput sights_of(const logs::JobLog& log, const std::function<bool(uint32_t rule)>& wanted, TimeNs after);

}  // namespace culprit::scene
