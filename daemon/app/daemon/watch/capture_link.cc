#include "app/daemon/watch/capture_link.h"

namespace culprit::app {

Result<HelperLines> run_capture(const HelperWay& way, const capture::Request& request, HelperLimits limits) {
  limits.within_ns = request.budget_ns;
  return ask_helper(way, capture::request_line(request), limits);
}

}  // namespace culprit::app
