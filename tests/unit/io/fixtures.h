// Common helpers of io's tests: a temporary folder, the real Env run until an event, and the other end of a
// socket.
#pragma once

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "io/uv/env.h"

namespace culprit::io::testing {

struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "culprit-io-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
  std::string path;
};

// Runs the loop until a callback calls stop(), and for ten seconds at most.
struct RealLoop {
  std::unique_ptr<Env> env = make_uv_env();
  void run() {
    bool late = false;
    auto guard = env->timer([&] { late = true, env->stop(); });
    guard->start(10 * kNsPerSecond);
    env->run();
    BOOST_REQUIRE_MESSAGE(!late, "nothing happened for ten seconds");
  }
};

// A blocking client, on any thread: it throws, since Boost.Test's checks belong to the main thread.
class Client {
 public:
  static int to_unix(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return socket;
    ::close(socket);
    return -1;
  }
  static int to_port(const std::string& address) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) return socket;
    ::close(socket);
    return -1;
  }

  explicit Client(int socket) : socket_(socket) {
    if (socket < 0) throw std::system_error(errno, std::generic_category(), "connect");
  }
  ~Client() { hang_up(); }
  Client(Client&& other) noexcept : socket_(other.socket_) { other.socket_ = -1; }
  void send(std::string_view bytes) {
    if (::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
      throw std::system_error(errno, std::generic_category(), "send");
  }
  // Sends as much as fits into the kernel's buffer.
  size_t send_some(std::string_view bytes) {
    const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 ? 0 : static_cast<size_t>(n);
  }
  std::string receive(size_t size) {
    std::string bytes(size, '\0');
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(0, ::recv(socket_, bytes.data(), size, MSG_WAITALL))));
    return bytes;
  }
  void hang_up() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  int socket_;
};

}  // namespace culprit::io::testing
