// `culprit recover replay`: the controller's recorded inputs through a fresh controller.
#pragma once

#include "cli/verbs.h"

namespace culprit::cli {

void add_recover_replay(Command& recover, Run& run);

}  // namespace culprit::cli
