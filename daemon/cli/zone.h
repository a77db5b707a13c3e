// Zones by name from the system's database. Uses libc and sets its zone: call before other threads start.
#pragma once

#include <string>

#include "base/status.h"
#include "base/time.h"

namespace culprit::cli {

// "UTC", "+02:00", "Europe/Berlin", or "local": the zone of the environment.
Result<Zone> zone_named(const std::string& name);

}  // namespace culprit::cli
