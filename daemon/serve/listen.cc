#include "serve/listen.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <system_error>

namespace culprit::serve {
namespace {

// The accept queue is longer than the number of served connections: in a burst clients wait and are not
// refused. The kernel limits it to net.core.somaxconn, 4096.
constexpr int kBacklog = 4096;

std::string reason(int error) { return std::generic_category().message(error); }

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  std::memcpy(out.sun_path, path.c_str(), path.size() + 1);
  return out;
}

// Only an old socket file may be replaced, not a served socket or another kind of file.
Status may_replace(const std::string& address, const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0)
    return errno == ENOENT ? Status() : fail(ErrorCode::kIo, fmt::format("{}: {}", address, reason(errno)));
  if (!S_ISSOCK(status.st_mode))
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: there is a file of that name that is no socket", address));
  Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un at = unix_address(path);
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 || errno == EAGAIN)
    return fail(ErrorCode::kDenied, fmt::format("{}: another process serves it already", address));
  return {};
}

// Binds under a temporary name and renames the file: no client finds a socket that does not listen yet or
// has other permissions.
Result<Listening> listen_unix(const std::string& address, uint32_t mode) {
  const std::string path = address.substr(5), staged = path + ".new";
  if (path.empty() || path[0] != '/')
    return fail(ErrorCode::kInvalid, fmt::format("{}: the path does not begin with '/'", address));
  if (staged.size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorCode::kInvalid, fmt::format("{}: longer than the {} bytes that a socket's path may have",
                                                 address, sizeof(sockaddr_un::sun_path) - 5));
  if (Status status = may_replace(address, path); !status) return tl::unexpected(status.error());
  Descriptor socket_of(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un at = unix_address(staged);
  unlink(staged.c_str());
  if (socket_of.get() < 0 || bind(socket_of.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    return fail(errno == EACCES ? ErrorCode::kDenied : ErrorCode::kIo,
                fmt::format("{}: cannot be made: {}", address, reason(errno)));
  if (chmod(staged.c_str(), mode) != 0 || listen(socket_of.get(), kBacklog) != 0 ||
      rename(staged.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(staged.c_str());
    return fail(ErrorCode::kIo, fmt::format("{}: cannot be made: {}", address, reason(error)));
  }
  return Listening{socket_of.release(), true, path, address};
}

Result<Listening> listen_tcp(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == address.npos || colon == 0 || colon + 1 == address.size())
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: neither unix:PATH nor HOST:PORT, such as 127.0.0.1:7420", address));
  std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  uint16_t number = 0;  // getaddrinfo reduces larger ones modulo 65,536
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != port.data() + port.size())
    return fail(ErrorCode::kInvalid, fmt::format("{}: '{}' is no port", address, port));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    return fail(ErrorCode::kInvalid, fmt::format("{}: {}", address, gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  Descriptor socket_of(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;  // a restart need not wait for the last packets of old connections
  setsockopt(socket_of.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(socket_of.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(socket_of.get(), kBacklog) != 0) {
    const int error = errno;
    return fail(error == EACCES ? ErrorCode::kDenied : ErrorCode::kIo,
                fmt::format("{}: {}", address,
                            error == EADDRINUSE ? "the port is in use by another process" : reason(error)));
  }
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  getsockname(socket_of.get(), reinterpret_cast<sockaddr*>(&at), &size);
  return Listening{socket_of.release(), false, "", address_text(at, size)};
}

}  // namespace

std::string address_text(const sockaddr_storage& at, socklen_t size) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&at), size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "?";
  return at.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<Listening> listen_at(const std::string& address, uint32_t mode) {
  return address.starts_with("unix:") ? listen_unix(address, mode) : listen_tcp(address);
}

}  // namespace culprit::serve
