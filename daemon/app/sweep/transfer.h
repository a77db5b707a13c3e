// One pair of a sweep: round trips, then bytes in both directions over a connection each. The bytes follow
// from the sweep's secret and the task, so the receiver knows each of them.
//
// Blocking within the task's limit; any thread.
#pragma once

#include <string>

#include "app/sweep/messages.h"
#include "app/sweep/wire.h"

namespace culprit::app::sweeping {

Done run_task(const Task& task, Listener& listener, const std::string& secret);

}  // namespace culprit::app::sweeping
