// The table of `culprit hosts`. Pure functions of the daemon's answer.
#pragma once

#include <string>
#include <vector>

#include "cli/remote.h"

namespace culprit::cli {

// Suspects by score, then silent or unhealthy hosts, odd ones by score, normal ones; otherwise in the
// daemon's order.
std::vector<Json> worst_first(std::vector<Json> hosts);
std::string hosts_text(const std::vector<Json>& hosts, const Zone& zone, bool color);

}  // namespace culprit::cli
