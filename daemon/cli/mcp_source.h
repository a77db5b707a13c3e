// The jobs that `culprit mcp` serves: a daemon's, or those in a folder. Calls block.
#pragma once

#include <memory>
#include <string>

#include "app/client.h"
#include "app/offline/diagnose.h"
#include "cli/mcp.h"

namespace culprit::cli {

std::unique_ptr<McpSource> mcp_of_daemon(app::Client client);
// Reads the folder at the first request, and stores the reports.
std::unique_ptr<McpSource> mcp_of_folder(app::DiagnoseOptions options);

}  // namespace culprit::cli
