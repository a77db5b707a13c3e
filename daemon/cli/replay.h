// `culprit replay`: a job that failed for unknown reasons runs again, smaller, on groups of its hosts. Not
// `culprit recover replay`, which gives recorded inputs to a controller.
#pragma once

#include "cli/verbs.h"

namespace culprit::cli {

void add_replay(Command& app, Run& run);

}  // namespace culprit::cli
