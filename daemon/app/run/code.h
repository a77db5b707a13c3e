// Late code updates of `culprit run --retries --code job.toml`: a pending revision of the program is taken by
// the attempt after the next failure. The file stays the user's: it is read, and never written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/run/attempt.h"
#include "base/status.h"
#include "base/time.h"
#include "core/recover/decide.h"

namespace culprit::app {

// Table [code] of a job.toml. Empty: not there.
struct CodeFile {
  std::string revision, last_good, pending;
  TimeNs changed_ns = kNoTime;  // last change of the file
};

// Reads a regular file of at most limits::kJobFileBytes. Blocks. An error if it cannot be read, or if a
// revision is no word of 1 to 200 letters, digits and ._/@:+-, or begins with '-'.
Result<CodeFile> read_code(const std::string& path);

// What the next attempt may run, by the attempts so far; the last one has failed. A revision that has run
// before is not pending: it either runs or was taken back. Pure.
recover::CodeChoice code_choice(const std::vector<Attempt>& attempts, const CodeFile& file);

// When a pending revision has waited for `within`; kNoTime: none is pending. An edit of the file begins the
// wait again. Pure.
TimeNs pending_due(const std::vector<Attempt>& attempts, const CodeFile& file, TimeNs within);

}  // namespace culprit::app
