// Suggestions for misspelt names of jobs and hosts, by what a daemon knows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/client.h"
#include "base/status.h"

namespace culprit::cli {

// The daemon's error about a job or host, with the one that was probably meant. Asks the daemon for a list if
// the error says that there is no such one. Blocks.
std::string with_meant_job(app::Client& client, const Error& error, const std::string& job);
std::string with_meant_host(app::Client& client, const Error& error, const std::string& host);

// "; `culprit run` kept …" with the command that reads it, where this user has a kept run of the name; else
// empty. Looks at folders.
std::string stored_run_hint(const std::string& job);
// The same of any run.
std::string stored_runs_hint();

}  // namespace culprit::cli
