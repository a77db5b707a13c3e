// What is held against hosts, for the lists of hosts and suspects. Thread: the loop's.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/daemon/api/named_hosts.h"
#include "app/daemon/keep/recorder.h"
#include "base/status.h"

namespace culprit::app {

// The hosts that the diagnoses of the index name: of one job, or with an empty name of all.
void named_in_index(Recorder& recorder, const std::string& job,
                    std::function<void(Result<std::vector<NamedHost>>)> then);
// Sets what is held against the host. `of`: null, nothing.
void put_host_state(nlohmann::json& row, const NamedHost* of);

}  // namespace culprit::app
