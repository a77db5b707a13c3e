// Errors and warnings at the position of a key. Pure.
#pragma once

#include <string>

#include "app/config/config.h"

namespace culprit::app {

// At the key, such as "http.tls.cert"; without a position if the key was not set.
ConfigError error_at(const LoadedConfig& loaded, const std::string& key, const std::string& what);
// As format_error(), with "warning".
std::string format_warning(const ConfigError& error);

}  // namespace culprit::app
