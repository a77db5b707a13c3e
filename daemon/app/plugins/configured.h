// `culpritd --check`: whether the plugins that have a [[plugin]] table are there, load, and take the options
// of their table. Runs each library in its host program and asks for its description; no detector is created.
// Blocking; one thread.
#pragma once

#include <string>
#include <vector>

#include "app/config/config.h"

namespace culprit::app {

struct ConfiguredPlugins {
  std::vector<std::string> errors;  // a sentence each
  std::vector<std::string> notes;   // what this user cannot check
  size_t sound = 0;
};

// `host_program` empty: the installed one.
ConfiguredPlugins check_configured_plugins(const Config& config, const std::string& host_program = {});

}  // namespace culprit::app
