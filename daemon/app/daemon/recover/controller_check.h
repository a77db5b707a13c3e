// What keeps the controller of a configuration from ever working on this host: placeholders, files, role. For
// `culpritd --check`. Reads files; blocks shortly.
#pragma once

#include <vector>

#include "app/config/config.h"

namespace culprit::app {

struct ControllerChecked {
  std::vector<ConfigError> errors;    // it cannot work
  std::vector<ConfigError> warnings;  // a program is missing: it may be installed later
};
// `loaded` has no errors.
ControllerChecked check_controller(const LoadedConfig& loaded);

}  // namespace culprit::app
