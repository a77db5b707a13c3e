#include "io/address.h"

#include <charconv>

namespace culprit::io {

std::optional<HostPort> split_address(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == address.npos) return std::nullopt;
  std::string_view host = address.substr(0, colon);
  const std::string_view port = address.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  HostPort split{std::string(host), 0};
  const auto [end, wrong] = std::from_chars(port.data(), port.data() + port.size(), split.port);
  if (host.empty() || wrong != std::errc() || end != port.data() + port.size()) return std::nullopt;
  return split;
}

}  // namespace culprit::io
