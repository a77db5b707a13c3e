// Makes an allocation of the plugin fail, for `culprit plugin check`. Only in the host program, whose
// malloc takes precedence for the plugin's calls.
#pragma once

#include "plughost/detector.h"

namespace culprit::plughost {

// `number`: the number (from 1) of the first allocation in plugin code that fails, as do all later ones;
// null: none fails. Returns the function to call around plugin code; null: none.
CodeOfPlugin arm_failing_allocations(const char* number);

}  // namespace culprit::plughost
