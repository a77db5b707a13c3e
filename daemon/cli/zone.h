// Zones by name, out of the system's database. Asks libc and sets its zone: before other threads begin.
#pragma once

#include <string>

#include "base/status.h"
#include "base/time.h"

namespace culprit::cli {

// "UTC", "+02:00", "Europe/Berlin", or "local": the zone of the environment.
Result<Zone> zone_named(const std::string& name);

}  // namespace culprit::cli
