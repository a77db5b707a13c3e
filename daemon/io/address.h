// "HOST:PORT" as people write it. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace culprit::io {

struct HostPort {
  std::string host;  // without the brackets of "[::1]:80"
  uint16_t port = 0;
};
std::optional<HostPort> split_address(std::string_view address);

}  // namespace culprit::io
