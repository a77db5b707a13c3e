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

// "localhost:80", "127.0.0.1:80", "[::1]:80".
bool is_loopback(std::string_view address);

// Network for per-peer limits: the host of "10.0.0.7:40312", and the /64 of an IPv6 host, which may use all
// addresses of the /64. The whole text if the address is not numeric.
std::string network_of(std::string_view address);

}  // namespace culprit::io
