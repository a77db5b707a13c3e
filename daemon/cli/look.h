// The command that shows a line of evidence with its surroundings, ready to paste into a shell. Names of
// files, hosts and jobs are untrusted: they are quoted, and the command contains no control characters.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "app/client.h"
#include "model/report.h"

namespace culprit::cli {

// `sed` on the file, after its decompressor. Empty: the evidence has no line, or its file is not regular.
// Reads the first bytes of the file.
std::string look_in_file(const Evidence& evidence);

// `culprit evidence cat` for a daemon's job; `options` are those of this command. Empty: no line or no job.
std::string look_at_daemon(const Evidence& evidence, std::string_view job, const app::ClientOptions& options);

}  // namespace culprit::cli
