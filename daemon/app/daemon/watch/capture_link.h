// Sends a request to culprit-capture and returns the lines of its answer. Blocking; any thread but the
// loop's.
#pragma once

#include "app/daemon/watch/helper_link.h"
#include "capture/request.h"

namespace culprit::app {

inline HelperWay capture_way() { return {"culprit-capture", "/run/culprit-capture/socket", ""}; }

// `limits.within_ns` is taken from the request.
Result<HelperLines> run_capture(const HelperWay& way, const capture::Request& request,
                                HelperLimits limits = {});

}  // namespace culprit::app
