// The verbs of `culprit plugin`, each in a separate file. See verbs.h.
#pragma once

#include "cli/verbs.h"

namespace culprit::cli {

void add_plugin_new(Command& plugin, Run& run);
void add_plugin_check(Command& plugin, Run& run);
void add_plugin_list(Command& plugin, Run& run);

}  // namespace culprit::cli
