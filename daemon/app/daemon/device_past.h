// What speaks against a device from jobs before. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "store/index.h"

namespace culprit::app {

// A sentence on the runs in which `own.device` was suspected before `own`, each once and the last three by
// name; empty where there are none. `faults` by time, as the index gives them.
std::string past_of(const store::DeviceFault& own, const std::vector<store::DeviceFault>& faults);

}  // namespace culprit::app
