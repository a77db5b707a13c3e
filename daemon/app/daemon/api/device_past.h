// Earlier faults of a device in other jobs. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "records/records.h"

namespace culprit::app {

// A sentence on earlier runs in which `own.device` was suspected: their number and the last three by name.
// Empty if there are none. `faults` are sorted by time, as the index returns them.
std::string past_of(const records::DeviceFault& own, const std::vector<records::DeviceFault>& faults);

}  // namespace culprit::app
