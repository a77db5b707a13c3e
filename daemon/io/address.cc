#include "io/address.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>

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

std::string network_of(std::string_view address) {
  const auto split = split_address(address);
  if (!split) return std::string(address);
  in6_addr six = {};
  if (::inet_pton(AF_INET6, split->host.c_str(), &six) != 1) return split->host;
  char text[INET6_ADDRSTRLEN] = "";
  if (IN6_IS_ADDR_V4MAPPED(&six)) return ::inet_ntop(AF_INET, &six.s6_addr[12], text, sizeof text);
  std::memset(&six.s6_addr[8], 0, 8);
  return std::string(::inet_ntop(AF_INET6, &six, text, sizeof text)) + "/64";
}

bool is_loopback(std::string_view address) {
  const std::string_view host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "[::1]" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

}  // namespace culprit::io
