#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "io/address.h"
#include "io/descriptors.h"
#include "io/system_error.h"
#include "io/uv/loop.h"

namespace culprit::io {
namespace {

// Pause of accepting without a free descriptor, as a connection in the kernel's queue would wake the loop at
// once. Other code frees descriptors within this time or not at all.
constexpr TimeNs kDescriptorWaitNs = 100 * kNsPerMs;
// Connections accepted per turn, so that a storm of them leaves time for existing ones.
constexpr int kAcceptsInTurn = 64;
// Length of the kernel's queue. A flood must not fill the queue before the next turn: the peer repeats a
// dropped SYN only after a second. The kernel's limit is net.core.somaxconn, 4096.
constexpr int kBacklog = 4096;

// Closes its socket unless it was released.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

Socket new_socket(int family) {
  return Socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

struct SocketFile {
  std::string path;  // empty: no file to remove
  dev_t device = 0;
  ino_t inode = 0;
};

bool fits(const std::string& path, sockaddr_un& address) {
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return true;
}

const sockaddr* generic(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }

// Whether `path` may be replaced: no file, or a socket without a server.
Status check_free(const std::string& path, const sockaddr_un& address) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return system_failure("unix:" + path, errno);
  }
  if (!S_ISSOCK(status.st_mode))
    return fail(ErrorCode::kInvalid, "unix:" + path + ": something that is no socket stands there");
  const Socket probe = new_socket(AF_UNIX);
  if (probe.get() < 0) return system_failure("unix:" + path, errno);
  if (::connect(probe.get(), generic(address), sizeof(address)) == 0 || errno == EAGAIN)
    return fail(ErrorCode::kIo, "unix:" + path + ": another process serves it");
  if (errno == ECONNREFUSED || errno == ENOENT) return {};
  return system_failure("unix:" + path, errno);
}

// Binds and listens under a temporary name, then renames: a client finds the old socket, or a listening new
// socket with final permissions.
Result<Socket> bind_unix(const std::string& path, uint32_t mode, SocketFile& file) {
  sockaddr_un address = {}, temporary = {};
  const std::string non_log = path + "." + std::to_string(::getpid());
  if (!fits(path, address) || !fits(non_log, temporary))
    return fail(ErrorCode::kLimit, "unix:" + path + ": is longer than a socket's path may be");
  if (Status status = check_free(path, address); !status) return tl::unexpected(status.error());
  Socket socket = new_socket(AF_UNIX);
  ::unlink(non_log.c_str());  // left by a killed process with the same pid
  if (socket.get() < 0 || ::bind(socket.get(), generic(temporary), sizeof(temporary)) != 0)
    return system_failure("unix:" + path, errno);
  struct stat status;
  if (::chmod(non_log.c_str(), mode) != 0 || ::listen(socket.get(), kBacklog) != 0 ||
      ::stat(non_log.c_str(), &status) != 0 || ::rename(non_log.c_str(), path.c_str()) != 0) {
    const int failed = errno;
    ::unlink(non_log.c_str());
    return system_failure("unix:" + path, failed);
  }
  file = {path, status.st_dev, status.st_ino};
  return socket;
}

std::string port_of(int descriptor) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  char port[NI_MAXSERV] = "0";
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, nullptr, 0, port, sizeof(port), NI_NUMERICSERV);
  return port;
}

// "HOST:PORT" or "[HOST]:PORT"; `address` receives the port that the kernel chose.
Result<Socket> bind_tcp(std::string& address) {
  const auto split = split_address(address);
  if (!split)
    return fail(ErrorCode::kInvalid, address + ": is no address, which is \"unix:PATH\" or \"HOST:PORT\"");
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  if (const int failed =
          ::getaddrinfo(split->host.c_str(), std::to_string(split->port).c_str(), &hints, &found))
    return fail(ErrorCode::kNotFound, address + ": " + ::gai_strerror(failed));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  Socket socket = new_socket(found->ai_family);
  const int on = 1;
  if (socket.get() >= 0) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (socket.get() < 0 || ::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    return system_failure(address, errno);
  address = address.substr(0, address.rfind(':') + 1) + port_of(socket.get());
  return socket;
}

class PollListener final : public Listener {
 public:
  PollListener(Loop& loop, Socket socket, std::string address, OnConnection on_connection)
      : loop_(loop),
        socket_(std::move(socket)),
        address_(std::move(address)),
        on_connection_(std::make_shared<OnConnection>(std::move(on_connection))),
        wait_(make_timer(loop, [this] { watch(); })) {}

  ~PollListener() override {
    struct stat status;
    if (!file.path.empty() && ::lstat(file.path.c_str(), &status) == 0 && status.st_dev == file.device &&
        status.st_ino == file.inode)
      ::unlink(file.path.c_str());
  }

  std::string address() const override { return address_; }
  uint64_t descriptors_missing() const override { return descriptors_missing_; }

  Status watch() {
    auto poll = make_poll(loop_, socket_.get(), [this] { accept_all(); });
    if (!poll) return tl::unexpected(poll.error());
    poll_ = std::move(*poll);
    return {};
  }

  SocketFile file;

 private:
  void accept_all() {
    const std::weak_ptr<OnConnection> alive = on_connection_;
    for (int i = 0; i < kAcceptsInTurn; ++i) {
      const int descriptor = ::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (descriptor < 0) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) wait();
        return;
      }
      if (is_reserved(descriptor)) {
        ::close(descriptor);
        return wait();
      }
      auto stream = make_stream(loop_, descriptor);
      if (!stream) continue;
      const std::shared_ptr<OnConnection> call = on_connection_;
      (*call)(std::move(*stream));
      if (alive.use_count() == 1) return;  // only `call` holds it: the owner was destroyed
    }
  }

  void wait() {
    ++descriptors_missing_;
    poll_.reset();
    wait_->start(kDescriptorWaitNs, 0);
  }

  Loop& loop_;
  const Socket socket_;
  const std::string address_;
  const std::shared_ptr<OnConnection> on_connection_;
  uint64_t descriptors_missing_ = 0;
  std::unique_ptr<Timer> wait_;
  std::unique_ptr<Poll> poll_;
};

}  // namespace

Result<std::unique_ptr<Listener>> make_listener(Loop& loop, const std::string& address, uint32_t mode,
                                                OnConnection on_connection) {
  std::string bound = address;
  SocketFile file;
  auto socket = address.rfind("unix:", 0) == 0 ? bind_unix(address.substr(5), mode, file) : bind_tcp(bound);
  if (!socket) return tl::unexpected(socket.error());
  auto listener = std::make_unique<PollListener>(loop, std::move(*socket), bound, std::move(on_connection));
  listener->file = file;
  if (Status status = listener->watch(); !status) return tl::unexpected(status.error());
  return listener;
}

}  // namespace culprit::io
