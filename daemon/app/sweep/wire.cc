#include "app/sweep/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/random.h"
#include "io/system_error.h"

namespace culprit::app::sweeping {
namespace {

constexpr char kMagic[8] = {'C', 'U', 'L', 'P', 'S', 'W', 'P', '1'};
constexpr TimeNs kProofWithin = kNsPerSecond;  // of a connection that may be a stranger's
constexpr int kBacklog = 256;

using Digest = std::array<unsigned char, 32>;
struct Opening {
  char magic[8];
  uint64_t purpose;
  unsigned char number[16];
};
struct Reply {
  unsigned char number[16];
  Digest proof;
};

Digest digest_of(const std::string& secret, std::string_view text) {
  Digest out{};
  unsigned size = static_cast<unsigned>(out.size());
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), &size);
  return out;
}

// What the end in this role signs.
Digest proof_of(const std::string& secret, char role, const Opening& opening, const Reply& reply) {
  std::string text(1, role);
  text.append(reinterpret_cast<const char*>(&opening), sizeof opening);
  text.append(reinterpret_cast<const char*>(reply.number), sizeof reply.number);
  return digest_of(secret, text);
}

bool is_equal(const Digest& a, const Digest& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

// Waits; false: the time is over.
bool wait_for(int fd, short events, TimeNs until) {
  for (;;) {
    const TimeNs left = until - steady_now();
    if (left <= 0) return false;
    pollfd one{fd, events, 0};
    const int n = ::poll(&one, 1, static_cast<int>(std::min<TimeNs>(left / kNsPerMs + 1, 60'000)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

void set_no_delay(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
      ::inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, text, sizeof text);
    else
      ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  }
  return text;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* out = nullptr;
  if (::getaddrinfo(host.empty() ? nullptr : host.c_str(), fmt::format("{}", port).c_str(), &hints, &out) !=
      0)
    out = nullptr;
  return {out, &::freeaddrinfo};
}

tl::expected<Wire, Failure> connect_one(const addrinfo& to, TimeNs until) {
  io::Descriptor socket(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return tl::unexpected(Failure::kRefused);
  if (::connect(socket.get(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS)
      return tl::unexpected(errno == ECONNREFUSED ? Failure::kRefused : Failure::kUnreached);
    if (!wait_for(socket.get(), POLLOUT, until)) return tl::unexpected(Failure::kUnreached);
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
      return tl::unexpected(error == ECONNREFUSED ? Failure::kRefused : Failure::kUnreached);
  }
  set_no_delay(socket.get());
  return Wire(std::move(socket));
}

bool prove_as_acceptor(Wire& wire, const std::string& secret, uint64_t purpose, TimeNs until) {
  Opening opening{};
  if (!wire.receive(&opening, sizeof opening, until)) return false;
  if (std::memcmp(opening.magic, kMagic, sizeof kMagic) != 0 || opening.purpose != purpose) return false;
  Reply reply{};
  if (!fill_random(reply.number, sizeof reply.number)) return false;
  reply.proof = proof_of(secret, 'a', opening, reply);
  Digest proof{};
  return wire.send(&reply, sizeof reply, until) && wire.receive(&proof, sizeof proof, until) &&
         is_equal(proof, proof_of(secret, 'c', opening, reply));
}

}  // namespace

bool Wire::send(const void* data, size_t size, TimeNs until) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::send(get(), at, size, MSG_NOSIGNAL);
    if (n > 0) {
      at += n, size -= static_cast<size_t>(n);
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait_for(get(), POLLOUT, until)) return false;
    } else if (n == 0 || errno != EINTR) {
      return false;
    }
    if (size > 0 && steady_now() > until) return false;
  }
  return true;
}

std::optional<size_t> Wire::receive_some(void* data, size_t size, TimeNs until) {
  for (;;) {
    const ssize_t n = ::recv(get(), data, size, 0);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(get(), POLLIN, until)) return std::nullopt;
    } else if (errno != EINTR) {
      return 0;
    }
  }
}

bool Wire::receive(void* data, size_t size, TimeNs until) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const auto n = receive_some(at, size, until);
    if (!n || *n == 0) return false;
    at += *n, size -= *n;
  }
  return true;
}

bool Wire::send(const Message& message, TimeNs until) {
  const std::string line = to_line(message);
  return send(line.data(), line.size(), until);
}

Result<Message> Wire::next_message(TimeNs until) {
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      const std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return parse_message(line);
    }
    if (buffer_.size() >= kLineMost) return fail(ErrorCode::kLimit, "a message of the sweep is too long");
    char bytes[kLineMost];
    const auto n = receive_some(bytes, sizeof bytes, until);
    if (!n) return fail(ErrorCode::kTooSoon, "no message of the sweep came in time");
    if (*n == 0) return fail(ErrorCode::kIo, "the connection of the sweep was closed");
    buffer_.append(bytes, *n);
  }
}

std::string Wire::peer_address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getpeername(get(), reinterpret_cast<sockaddr*>(&address), &size) == 0 ? address_text(address) : "";
}

std::string Wire::own_address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getsockname(get(), reinterpret_cast<sockaddr*>(&address), &size) == 0 ? address_text(address) : "";
}

tl::expected<Wire, Failure> connect_to(const std::string& address, uint16_t port, TimeNs until) {
  const Addresses found = resolve(address, port, 0);
  Failure last = Failure::kUnreached;
  for (const addrinfo* one = found.get(); one; one = one->ai_next) {
    auto wire = connect_one(*one, until);
    if (wire) return wire;
    last = wire.error();
  }
  return tl::unexpected(last);
}

bool prove_as_connector(Wire& wire, const std::string& secret, uint64_t purpose, TimeNs until) {
  Opening opening{};
  std::memcpy(opening.magic, kMagic, sizeof kMagic);
  opening.purpose = purpose;
  Reply reply{};
  if (!fill_random(opening.number, sizeof opening.number)) return false;
  if (!wire.send(&opening, sizeof opening, until) || !wire.receive(&reply, sizeof reply, until)) return false;
  if (!is_equal(reply.proof, proof_of(secret, 'a', opening, reply))) return false;
  const Digest proof = proof_of(secret, 'c', opening, reply);
  return wire.send(proof.data(), proof.size(), until);
}

Result<Listener> Listener::open(const std::string& address, uint16_t port) {
  const Addresses found = resolve(address, port, AI_PASSIVE);
  int error = EADDRNOTAVAIL;
  // The IPv6 wildcard takes both kinds.
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* one = found.get(); one; one = one->ai_next) {
      if (one->ai_family != family) continue;
      io::Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int on = 1, off = 0;
      (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      if (family == AF_INET6) (void)::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      if (!socket.is_open() || ::bind(socket.get(), one->ai_addr, one->ai_addrlen) != 0 ||
          ::listen(socket.get(), kBacklog) != 0) {
        error = errno;
        continue;
      }
      sockaddr_storage bound{};
      socklen_t size = sizeof bound;
      (void)::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
      Listener out;
      out.socket_ = std::move(socket);
      out.port_ = ntohs(family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
      return out;
    }
  }
  return io::system_failure(fmt::format("port {} of {}", port, address.empty() ? "this host" : address),
                            error);
}

std::optional<Wire> Listener::accept(const std::string& secret, uint64_t purpose, TimeNs until) {
  while (wait_for(socket_.get(), POLLIN, until)) {
    io::Descriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) continue;
    set_no_delay(socket.get());
    Wire wire(std::move(socket));
    if (prove_as_acceptor(wire, secret, purpose, std::min(until, steady_now() + kProofWithin))) return wire;
  }
  return std::nullopt;
}

uint64_t keyed_number(const std::string& secret, std::string_view text) {
  const Digest digest = digest_of(secret, text);
  uint64_t out = 0;
  std::memcpy(&out, digest.data(), sizeof out);
  return out;
}

}  // namespace culprit::app::sweeping
