#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "io/address.h"
#include "io/system_error.h"
#include "io/uv/loop.h"

namespace culprit::io {
namespace {

// Time-out per address: one unreachable address must not use up the time of others.
constexpr TimeNs kAddressNs = 3 * kNsPerSecond;
// Addresses tried per name: the first ones.
constexpr size_t kAddresses = 16;

struct Address {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
};
struct Found {
  std::vector<Address> addresses;
  int failed = 0;  // error of getaddrinfo
};

Found look_up(const HostPort& name, int flags) {
  addrinfo hints = {}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  Found found;
  found.failed = ::getaddrinfo(name.host.c_str(), std::to_string(name.port).c_str(), &hints, &list);
  if (found.failed != 0) return found;
  for (const addrinfo* at = list; at != nullptr && found.addresses.size() < kAddresses; at = at->ai_next) {
    Address& address = found.addresses.emplace_back();
    std::memcpy(&address.bytes, at->ai_addr, at->ai_addrlen);
    address.size = at->ai_addrlen;
  }
  ::freeaddrinfo(list);
  return found;
}

void set(int descriptor, int level, int option, int64_t value) {
  const auto number = static_cast<int>(value);
  ::setsockopt(descriptor, level, option, &number, sizeof(number));
}

// Detects a vanished peer: keepalive if the connection is idle, the TCP user timeout if bytes are
// unacknowledged.
void notice_silence(int descriptor, TimeNs silent_ns) {
  const TimeNs third_s = std::max<TimeNs>(1, silent_ns / kNsPerSecond / 3);
  set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, third_s);
  set(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, third_s);
  set(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 2);
  set(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, silent_ns / kNsPerMs);
}

struct WritableState {
  uv_poll_t handle;
  std::function<void()> call;
};

class TcpConnecting final : public Connecting {
 public:
  TcpConnecting(Loop& loop, std::string address, ConnectOptions options, OnConnected done)
      : loop_(loop),
        address_(std::move(address)),
        options_(options),
        done_(std::move(done)),
        whole_(make_timer(loop, [this] { finish(fail(ErrorCode::kIo, timeout_text())); })),
        each_(make_timer(loop, [this] { failed(ETIMEDOUT); })) {}
  ~TcpConnecting() override {
    give_up();
    // An unresponsive name server blocks the resolver's thread for half a minute; the loop must not wait for
    // it.
    if (resolver_) resolver_->abandon();
  }

  void begin(HostPort name) {
    whole_->start(options_.timeout_ns);
    // Numeric addresses need no name server.
    if (Found found = look_up(name, AI_NUMERICHOST); found.failed == 0) return try_soon(std::move(found));
    auto found = std::make_shared<Found>();
    auto resolver = make_worker(loop_, "resolver");
    if (!resolver) {
      soon_ = make_timer(loop_, [this, why = resolver.error()] { finish(tl::unexpected(why)); });
      return soon_->start(0);
    }
    resolver_ = std::move(*resolver);
    resolver_->submit([found, name = std::move(name)] { *found = look_up(name, AI_ADDRCONFIG); },
                      [this, found] { looked_up(std::move(*found)); });
  }

 private:
  std::string timeout_text() const {
    return address_ + (found_.addresses.empty() ? ": its name was not found in time" : ": does not answer");
  }

  void try_soon(Found found) {
    found_ = std::move(found);
    // An immediate failure is reported from the loop too.
    soon_ = make_timer(loop_, [this] { try_next(); });
    soon_->start(0);
  }

  void looked_up(Found found) {
    if (found.failed != 0)
      return finish(fail(ErrorCode::kNotFound, address_ + ": " + ::gai_strerror(found.failed)));
    found_ = std::move(found);
    try_next();
  }

  void try_next() {
    if (next_ == found_.addresses.size())
      return finish(system_failure(address_, last_failure_ == 0 ? EHOSTUNREACH : last_failure_));
    const Address& address = found_.addresses[next_++];
    descriptor_ = ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor_ < 0) return failed(errno);
    notice_silence(descriptor_, options_.silent_ns);
    if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address.bytes), address.size) != 0 &&
        errno != EINPROGRESS)
      return failed(errno);
    auto* state = new WritableState;
    state->call = [this] { answered(); };
    if (const int wrong = uv_poll_init(&loop_.uv, &state->handle, descriptor_)) {
      delete state;
      return failed(-wrong);
    }
    state->handle.data = state;
    waiting_ = state;
    uv_poll_start(&state->handle, UV_WRITABLE,
                  [](uv_poll_t* handle, int, int) { static_cast<WritableState*>(handle->data)->call(); });
    if (next_ < found_.addresses.size()) each_->start(kAddressNs);
  }

  void answered() {
    int wrong = 0;
    socklen_t size = sizeof(wrong);
    ::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &wrong, &size);
    if (wrong != 0) return failed(wrong);
    stop_waiting();
    auto stream = make_stream(loop_, std::exchange(descriptor_, -1));
    if (!stream) return finish(tl::unexpected(stream.error()));
    finish(std::move(*stream));
  }

  void failed(int number) {
    last_failure_ = number;
    give_up();
    try_next();
  }

  void stop_waiting() {
    each_->stop();
    if (waiting_ != nullptr) close_and_free(std::exchange(waiting_, nullptr));
  }
  void give_up() {
    stop_waiting();
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

  // The callback may destroy this object.
  void finish(Result<std::unique_ptr<Stream>> result) {
    give_up();
    whole_->stop();
    const OnConnected done = std::exchange(done_, {});
    if (done) done(std::move(result));
  }

  Loop& loop_;
  const std::string address_;
  const ConnectOptions options_;
  OnConnected done_;
  std::unique_ptr<Timer> whole_, each_, soon_;
  std::unique_ptr<Worker> resolver_;
  Found found_;
  size_t next_ = 0;
  int descriptor_ = -1, last_failure_ = 0;
  WritableState* waiting_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Connecting>> make_connecting(Loop& loop, const std::string& address,
                                                    ConnectOptions options, OnConnected done) {
  auto name = split_address(address);
  if (!name || name->port == 0)
    return fail(ErrorCode::kInvalid, address + ": is no address to connect to, which is \"HOST:PORT\"");
  auto connecting = std::make_unique<TcpConnecting>(loop, address, options, std::move(done));
  connecting->begin(std::move(*name));
  return connecting;
}

}  // namespace culprit::io
