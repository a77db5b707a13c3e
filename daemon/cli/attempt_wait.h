// The wait of `culprit run --retries` for a service that an attempt could not reach. Prints what it waits
// for. Blocks; one thread: forks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/run/probe.h"
#include "base/time.h"

namespace culprit::cli {

// The services that do not answer now.
std::vector<app::ProbeTarget> unanswered_now(const std::vector<app::ProbeTarget>& services);

enum class ServiceWait : uint8_t { kAnswers, kSilent, kEnded };
// Waits until all of `away`, which is not empty, answer. kSilent: not until `until`, by the wall clock.
// `pause` waits so long; false from it ends the wait.
ServiceWait wait_for_services(std::vector<app::ProbeTarget> away, TimeNs until,
                              const std::function<bool(TimeNs)>& pause);

}  // namespace culprit::cli
