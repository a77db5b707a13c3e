#include "app/daemon/api/forwarding_api.h"

#include <fmt/format.h>

namespace culprit::app {

void ForwardingApi::redirect(const Answer& answer) const {
  answer(fail(ErrorCode::kNotFound, fmt::format("{} forwards to {}: ask there", parts_.config->host.name,
                                                parts_.uplink->counters().forward.to)));
}

}  // namespace culprit::app
