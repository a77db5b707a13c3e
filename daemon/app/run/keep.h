// Evidence that only a run's private daemon has: stacks that it captured, and lines of the trace socket.
// Saves it as files next to the logs, so that `culprit diagnose` of the folder reads them. Blocking; one
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "app/client.h"
#include "app/run/held_folder.h"
#include "base/status.h"

namespace culprit::app {

// Waits until the daemon has read this much of the file, for at most `within_ms`. Returns whether it has.
bool wait_until_read(Client& client, const std::string& job, const std::string& path, uint64_t bytes,
                     int within_ms);

// Writes each source into the folder as <name>.ndjson. Returns the number of sources.
Result<size_t> keep_evidence(Client& client, const std::string& job, const HeldFolder& folder);

}  // namespace culprit::app
