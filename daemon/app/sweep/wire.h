// TCP between members of a sweep. Both ends of a connection prove that they know the sweep's secret before
// anything else is said, by HMAC-SHA256 of fresh numbers of both. What follows is neither hidden nor signed:
// who can change packets on their way can change it.
//
// Blocking with a time limit; times are steady_now(). A Wire: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "app/sweep/messages.h"
#include "base/status.h"
#include "io/descriptors.h"

namespace culprit::app::sweeping {

class Wire {
 public:
  Wire() = default;
  explicit Wire(io::Descriptor socket) : socket_(std::move(socket)) {}

  bool is_open() const { return socket_.is_open(); }
  int get() const { return socket_.get(); }
  void close() { socket_ = io::Descriptor(); }

  // All bytes, or false: closed by the other end, or the time is over.
  bool send(const void* data, size_t size, TimeNs until);
  bool receive(void* data, size_t size, TimeNs until);
  // Some bytes; 0: closed or failed; nothing: the time is over.
  std::optional<size_t> receive_some(void* data, size_t size, TimeNs until);

  bool send(const Message& message, TimeNs until);
  // The next message; an error also for one of a wrong form. kTooSoon: the time is over.
  Result<Message> next_message(TimeNs until);
  // Whether a whole message waits, without reading more.
  bool has_message() const { return buffer_.find('\n') != std::string::npos; }

  // Addresses of the two ends, without ports.
  std::string peer_address() const;
  std::string own_address() const;

 private:
  io::Descriptor socket_;
  std::string buffer_;
};

// Why a connection failed: the network, or the other host's answer.
enum class Failure : uint8_t { kUnreached, kRefused };

// `purpose`: both ends have the same, and no other connection of the sweep has it.
tl::expected<Wire, Failure> connect_to(const std::string& address, uint16_t port, TimeNs until);
bool prove_as_connector(Wire& wire, const std::string& secret, uint64_t purpose, TimeNs until);

class Listener {
 public:
  // `address` empty: all. `port` 0: any.
  static Result<Listener> open(const std::string& address, uint16_t port);
  uint16_t port() const { return port_; }
  // The next connection whose other end knows the secret and has this purpose; others are closed.
  std::optional<Wire> accept(const std::string& secret, uint64_t purpose, TimeNs until);

 private:
  io::Descriptor socket_;
  uint16_t port_ = 0;
};

// The first 8 bytes of the HMAC of a text.
uint64_t keyed_number(const std::string& secret, std::string_view text);

}  // namespace culprit::app::sweeping
