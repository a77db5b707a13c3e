// Suggestions for misspelt names of jobs and hosts, from a daemon's lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/client.h"
#include "base/status.h"

namespace culprit::cli {

// The daemon's error about a job or host, with the name that was probably meant. Requests a list from the
// daemon if the error reports an unknown name. Blocks.
std::string with_meant_job(app::Client& client, const Error& error, const std::string& job);
std::string with_meant_host(app::Client& client, const Error& error, const std::string& host);

// "; `culprit run` kept …" with the command that reads this user's stored run of this name; empty: no such
// run. Reads folders.
std::string stored_run_hint(const std::string& job);
// The same of any run.
std::string stored_runs_hint();

}  // namespace culprit::cli
