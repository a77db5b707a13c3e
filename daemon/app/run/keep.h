// What a run's private daemon has beyond files of the run: stacks that it took, lines of the trace socket.
// They become files next to the logs, so that `culprit diagnose` of the folder sees them. Blocking; one
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "app/client.h"
#include "app/run/held_folder.h"
#include "base/status.h"

namespace culprit::app {

// Waits until the daemon has read that much of the file, for at most `within_ms`. Whether it has.
bool wait_until_read(Client& client, const std::string& job, const std::string& path, uint64_t bytes,
                     int within_ms);

// Writes each source into the folder as <name>.ndjson. Returns how many.
Result<size_t> keep_evidence(Client& client, const std::string& job, const HeldFolder& folder);

}  // namespace culprit::app
