// `culpritd --check`: whether the plugins with a [[plugin]] table exist, load, and accept the table's
// options. Runs each library in its host program and requests its description; creates no detector. Blocking;
// one thread.
#pragma once

#include <string>
#include <vector>

#include "app/config/config.h"

namespace culprit::app {

struct ConfiguredPlugins {
  std::vector<std::string> errors;  // a sentence each
  std::vector<std::string> notes;   // facts that this user lacks the permission to check
  size_t sound = 0;
};

// `host_program` empty: the installed program.
ConfiguredPlugins check_configured_plugins(const Config& config, const std::string& host_program = {});

}  // namespace culprit::app
