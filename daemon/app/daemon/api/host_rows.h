// Findings about hosts, for the lists of hosts and suspects. Thread: the loop's.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/daemon/api/named_hosts.h"
#include "app/daemon/keep/recorder.h"
#include "base/status.h"

namespace culprit::app {

// The hosts named by the index's diagnoses of one job, or of all jobs if `job` is empty.
void named_in_index(Recorder& recorder, const std::string& job,
                    std::function<void(Result<std::vector<NamedHost>>)> then);
// Sets the host's state from the findings about it. `of`: null, no findings.
void put_host_state(nlohmann::json& row, const NamedHost* of);

}  // namespace culprit::app
