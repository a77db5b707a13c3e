// Report of a numeric fault: its class, the immediate action, and the finding. Pure.
#pragma once

#include "core/detect/numerics/cases.h"
#include "core/detect/numerics/detector.h"
#include "core/detect/numerics/window.h"

namespace culprit::numerics {

NumericFault fault_of(const Case& known, const Window& window);
Finding finding_of(const Case& known, const Window& window);

}  // namespace culprit::numerics
