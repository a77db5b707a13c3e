// `culprit sweep`: pairs of an allocation's hosts exchange bytes before a job starts. Blocking; one thread.
#pragma once

#include "cli/verbs.h"

namespace culprit::cli {

void add_sweep(Command& app, Run& run);

}  // namespace culprit::cli
