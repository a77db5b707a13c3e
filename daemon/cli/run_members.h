// `culprit run --retries N --nodes N --spares S`: one member of a job on several hosts, each with its own
// `culprit run`. The members run each attempt together, and agree by files in the shared folder on whether
// another one follows, and on which hosts. Blocks; one thread: forks.
#pragma once

#include "app/run/launch.h"
#include "base/status.h"
#include "cli/run_end.h"
#include "cli/run_retries.h"
#include "cli/zone.h"

namespace culprit::cli {

// Makes the launch that of a member. An error: this process cannot be one. `named`: the user named the job.
Status join_members(const RetryOptions& options, bool named, app::Launch& launch);

// Returns the exit status: of this member's last command, or with --verdict-exit the code for a scheduler. 0
// on a spare that was not needed, and on a host that is left out.
int run_as_member(const RunAgain& again, const RunChoices& choices, const Zone& zone);

}  // namespace culprit::cli
