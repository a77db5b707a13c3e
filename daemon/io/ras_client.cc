#include "io/ras_client.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "io/address.h"

namespace culprit::io {
namespace {

constexpr int kRasStepMs = 100;              // interval of checks of `stop`
constexpr size_t kRasLineBytes = 4096;       // size of a reply to a command
constexpr size_t kRasTableBytes = 16 << 20;  // size of /proc/net/tcp: 100,000 sockets
constexpr TimeNs kRasAcceptWithin = kNsPerSecond;
constexpr int kRasAcceptStepMs = 10;

TimeNs ras_clock() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

uint16_t ras_port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

std::string read_ras_table(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string out;
  if (file < 0) return out;
  std::array<char, 65536> buffer;
  for (ssize_t got = 0;
       out.size() < kRasTableBytes && (got = ::read(file, buffer.data(), buffer.size())) > 0;)
    out.append(buffer.data(), static_cast<size_t>(got));
  ::close(file);
  return out;
}

class RasConnection {
 public:
  explicit RasConnection(const RasQuestion& question)
      : question_(question), until_ns_(ras_clock() + question.within_ns) {}
  ~RasConnection() {
    if (socket_ >= 0) ::close(socket_);
  }
  RasConnection(const RasConnection&) = delete;
  RasConnection& operator=(const RasConnection&) = delete;

  Status connect() {
    const auto place = split_address(question_.address);
    if (!place) return error(ErrorCode::kInvalid, "is no HOST:PORT");
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int failed =
            getaddrinfo(place->host.c_str(), std::to_string(place->port).c_str(), &hints, &found))
      return error(ErrorCode::kIo, gai_strerror(failed));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, freeaddrinfo);
    Status last = error(ErrorCode::kNotFound, "has no address");
    for (const addrinfo* one = found; one; one = one->ai_next)
      if (last = connect_to(*one); last) return last;
    return last;
  }

  Status send(std::string_view text) {
    while (!text.empty()) {
      if (const Status ready = wait(POLLOUT); !ready) return ready;
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return error(ErrorCode::kIo, std::strerror(errno));
      if (sent > 0) text.remove_prefix(static_cast<size_t>(sent));
    }
    return {};
  }

  // The reply to a command, without its newline.
  Result<std::string> line() {
    for (;;) {
      if (const size_t end = held_.find('\n'); end != held_.npos) {
        std::string out = held_.substr(0, end);
        held_.erase(0, end + 1);
        return out;
      }
      if (held_.size() > kRasLineBytes)
        return tl::unexpected(error(ErrorCode::kInvalid, "is no RAS service").error());
      const auto more = read();
      if (!more) return tl::unexpected(more.error());
      if (!*more) return tl::unexpected(error(ErrorCode::kIo, "closed the connection").error());
    }
  }

  // The next bytes of the answer; empty: the peer closed. Valid until the next call.
  Result<std::string_view> next() {
    if (answer_bytes_ > 0) held_.clear();
    if (held_.empty())
      if (const auto more = read(); !more) return tl::unexpected(more.error());
    answer_bytes_ += held_.size();
    if (answer_bytes_ > question_.most)
      return tl::unexpected(error(ErrorCode::kLimit, "the answer is larger than what is read").error());
    return held_;
  }

  // Waits until the service has accepted the connection, and requires a socket of that user.
  Status accepted_by(uint32_t uid) const {
    const TimeNs until = std::min(until_ns_, ras_clock() + kRasAcceptWithin);
    while (ras_clock() < until && !(question_.stop && *question_.stop)) {
      const auto owner = server_socket();
      if (owner && owner->uid == uid) return {};
      if (owner) return error(ErrorCode::kDenied, fmt::format("uid {} listens, not {}", owner->uid, uid));
      ::poll(nullptr, 0, kRasAcceptStepMs);
    }
    return error(ErrorCode::kIo, "accepts no connection");
  }

  std::optional<RasSocket> server_socket() const {
    sockaddr_storage own{}, peer{};
    socklen_t own_size = sizeof own, peer_size = sizeof peer;
    if (getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
        getpeername(socket_, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0)
      return std::nullopt;
    for (const char* table : {"/net/tcp", "/net/tcp6"})
      if (auto found =
              socket_between(read_ras_table(question_.proc + table), ras_port_of(peer), ras_port_of(own)))
        return found;
    return std::nullopt;
  }

 private:
  Status error(ErrorCode code, const std::string& what) const {
    return fail(code, question_.address + ": " + what);
  }

  Status connect_to(const addrinfo& address) {
    if (socket_ >= 0) ::close(socket_);
    socket_ = ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return error(ErrorCode::kIo, std::strerror(errno));
    if (::connect(socket_, address.ai_addr, address.ai_addrlen) == 0) return {};
    if (errno != EINPROGRESS) return error(ErrorCode::kNotFound, std::strerror(errno));
    if (const Status ready = wait(POLLOUT); !ready) return ready;
    int failed = 0;
    socklen_t size = sizeof failed;
    if (getsockopt(socket_, SOL_SOCKET, SO_ERROR, &failed, &size) == 0 && failed == 0) return {};
    return error(ErrorCode::kNotFound, std::strerror(failed));
  }

  Status wait(short what) {
    for (;;) {
      if (question_.stop && *question_.stop) return error(ErrorCode::kIo, "given up");
      const TimeNs left = until_ns_ - ras_clock();
      if (left <= 0) return error(ErrorCode::kIo, "did not answer in time");
      pollfd entry{socket_, what, 0};
      const int ready =
          ::poll(&entry, 1, static_cast<int>(std::min<TimeNs>(left / kNsPerMs + 1, kRasStepMs)));
      if (ready > 0) return {};
      if (ready < 0 && errno != EINTR) return error(ErrorCode::kIo, std::strerror(errno));
    }
  }

  // Appends received bytes; false at the end.
  Result<bool> read() {
    for (;;) {
      if (const Status ready = wait(POLLIN); !ready) return tl::unexpected(ready.error());
      const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got < 0) return tl::unexpected(error(ErrorCode::kIo, std::strerror(errno)).error());
      held_.append(buffer_.data(), static_cast<size_t>(got));
      return got > 0;
    }
  }

  const RasQuestion& question_;
  const TimeNs until_ns_;
  int socket_ = -1;
  std::string held_;
  size_t answer_bytes_ = 0;
  std::vector<char> buffer_ = std::vector<char>(256 << 10);
};

// The port after the colon of "0100007F:6D7C".
std::optional<uint16_t> ras_port_in(std::string_view cell) {
  const size_t colon = cell.rfind(':');
  uint16_t port = 0;
  if (colon == cell.npos) return std::nullopt;
  const auto [end, failed] = std::from_chars(cell.data() + colon + 1, cell.data() + cell.size(), port, 16);
  return failed == std::errc() && end == cell.data() + cell.size() ? std::optional(port) : std::nullopt;
}

}  // namespace

std::optional<RasSocket> socket_between(std::string_view table, uint16_t server_port, uint16_t client_port) {
  constexpr size_t kLocal = 1, kRemote = 2, kUid = 7, kInode = 9, kCells = 10;
  std::optional<RasSocket> out;
  for (const std::string_view line : split(table, '\n')) {
    std::array<std::string_view, kCells> cells;
    size_t n = 0;
    for (const std::string_view cell : split(line, ' '))
      if (!cell.empty() && n < kCells) cells[n++] = cell;
    if (n < kCells || ras_port_in(cells[kLocal]) != server_port || ras_port_in(cells[kRemote]) != client_port)
      continue;
    RasSocket found;
    const auto number = [](std::string_view cell, auto& value) {
      return std::from_chars(cell.data(), cell.data() + cell.size(), value).ec == std::errc();
    };
    // Two sockets with these ports and different addresses are ambiguous. Inode 0: not accepted yet.
    const bool sound =
        number(cells[kUid], found.uid) && number(cells[kInode], found.inode) && found.inode != 0;
    if (!sound || out) return std::nullopt;
    out = found;
  }
  return out;
}

bool has_socket(const std::string& proc, uint32_t pid, uint64_t inode) {
  const std::string folder = fmt::format("{}/{}/fd", proc, pid), wanted = fmt::format("socket:[{}]", inode);
  DIR* const list = ::opendir(folder.c_str());
  if (!list) return false;
  bool found = false;
  size_t seen = 0;
  for (const dirent* entry = nullptr; !found && seen < limits::kProcEntries && (entry = ::readdir(list));
       ++seen) {
    char target[64];
    const ssize_t size = ::readlinkat(::dirfd(list), entry->d_name, target, sizeof target);
    found = size > 0 && std::string_view(target, static_cast<size_t>(size)) == wanted;
  }
  ::closedir(list);
  return found;
}

std::set<std::string> own_addresses() {
  std::set<std::string> out;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return out;
  for (const ifaddrs* one = list; one; one = one->ifa_next) {
    if (!one->ifa_addr) continue;
    char text[INET6_ADDRSTRLEN] = "";
    const int family = one->ifa_addr->sa_family;
    if (family == AF_INET)
      inet_ntop(family, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
    else if (family == AF_INET6)
      inet_ntop(family, &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr, text, sizeof text);
    if (*text) out.emplace(text);
  }
  freeifaddrs(list);
  return out;
}

Result<RasReply> ask_ras(const RasQuestion& question) {
  RasConnection peer(question);
  if (const Status status = peer.connect(); !status) return tl::unexpected(status.error());
  if (question.only_uid)
    if (const Status own = peer.accepted_by(*question.only_uid); !own) return tl::unexpected(own.error());
  if (const Status sent = peer.send("SET FORMAT json\n"); !sent) return tl::unexpected(sent.error());
  const auto reply = peer.line();
  if (!reply) return tl::unexpected(reply.error());
  const bool json = reply->starts_with("OK");
  if (!json && !reply->starts_with("ERROR"))
    return fail(ErrorCode::kInvalid, question.address + ": is no RAS service");
  // The socket has no owner until a process accepts the connection.
  RasReply out;
  out.socket = peer.server_socket();
  if (question.may_ask && !(out.socket && question.may_ask(*out.socket)))
    return fail(ErrorCode::kDenied, question.address + ": the process that listens is of no job");
  if (const Status sent = peer.send("VERBOSE STATUS\n"); !sent) return tl::unexpected(sent.error());
  Status read;
  const auto next = [&]() -> std::string_view {
    if (!read) return {};
    const auto bytes = peer.next();
    if (!bytes) read = tl::unexpected(bytes.error());
    return bytes ? *bytes : std::string_view();
  };
  if (question.read_answer)
    question.read_answer(next);
  else
    for (std::string_view bytes; !(bytes = next()).empty();) out.text += bytes;
  if (!read) return tl::unexpected(read.error());
  return out;
}

}  // namespace culprit::io
