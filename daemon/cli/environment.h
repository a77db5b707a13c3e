// The user's environment. Any thread, while no thread changes it.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace culprit::cli {

// The value of a variable; nothing: not set.
inline std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace culprit::cli
