// The command that shows a line of evidence with its surroundings, ready to be pasted into a shell. Names of
// files, hosts and jobs are untrusted: they are quoted, and the command has no control characters.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "app/client.h"
#include "model/report.h"

namespace culprit::cli {

// `sed` on the file, behind its decompressor. Empty: the evidence has no line, or its file is no regular one.
// Reads the first bytes of the file.
std::string look_in_file(const Evidence& evidence);

// `culprit evidence cat` for a daemon's job; `options` as this command got them. Empty: without line or job.
std::string look_at_daemon(const Evidence& evidence, std::string_view job, const app::ClientOptions& options);

}  // namespace culprit::cli
