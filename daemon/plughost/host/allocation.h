// Makes an allocation of the plugin fail, for `culprit plugin check`. In the host program alone, whose malloc
// the plugin's calls reach first.
#pragma once

#include "plughost/detector.h"

namespace culprit::plughost {

// `number`: which allocation of the plugin's code fails, from 1, and all after it; null: none. Returns what
// must be called where a plugin's code runs; null: nothing.
CodeOfPlugin arm_failing_allocations(const char* number);

}  // namespace culprit::plughost
