// What is told of a fault of a job's numbers: its class, what to do now, and the finding. Pure.
#pragma once

#include "core/detect/numerics/cases.h"
#include "core/detect/numerics/detector.h"
#include "core/detect/numerics/window.h"

namespace culprit::core::numerics {

NumericFault fault_of(const Case& known, const Window& window);
Finding finding_of(const Case& known, const Window& window);

}  // namespace culprit::core::numerics
