#include "capture/debug_server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "capture/clock.h"
#include "io/system_error.h"

namespace culprit::capture {
namespace {

constexpr std::string_view kServerThread = "pt_workerserver";
constexpr std::string_view kStacksRequest =
    "POST /handler/dump_traceback HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: "
    "close\r\n\r\n";
constexpr size_t kServerBytes = 4 << 20, kTableBytes = 8 << 20, kDescriptors = 65'536;
constexpr uint8_t kListens = 0x0a;
constexpr TimeNs kAcceptWithin = 500 * kNsPerMs, kAcceptEvery = 5 * kNsPerMs;

template <class T>
bool number_in(std::string_view cell, T& value, int base) {
  const auto [end, failed] = std::from_chars(cell.data(), cell.data() + cell.size(), value, base);
  return failed == std::errc() && end == cell.data() + cell.size();
}

bool address_in(std::string_view cell, std::string& address, uint16_t& port) {
  const size_t colon = cell.rfind(':');
  if (colon == cell.npos) return false;
  address = std::string(cell.substr(0, colon));
  return number_in(cell.substr(colon + 1), port, 16);
}

std::string link_target(const std::string& path) {
  std::array<char, 128> target;
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  return std::string(target.data(), size > 0 ? static_cast<size_t>(size) : 0);
}

uint64_t socket_inode(std::string_view link) {
  constexpr std::string_view kBegin = "socket:[";
  uint64_t inode = 0;
  if (!link.starts_with(kBegin) || !link.ends_with(']')) return 0;
  link = link.substr(kBegin.size(), link.size() - kBegin.size() - 1);
  return number_in(link, inode, 10) ? inode : 0;
}

// Of all sockets that the process has open.
std::set<uint64_t> sockets_of(uint32_t pid) {
  std::set<uint64_t> out;
  const std::string folder = fmt::format("/proc/{}/fd/", pid);
  DIR* const list = ::opendir(folder.c_str());
  if (!list) return out;
  size_t seen = 0;
  while (const dirent* entry = ::readdir(list)) {
    if (++seen > kDescriptors) break;
    if (const uint64_t inode = socket_inode(link_target(folder + entry->d_name)); inode != 0)
      out.insert(inode);
  }
  ::closedir(list);
  return out;
}

struct Listener {
  TcpRow row;
  bool v6 = false;
};

const char* table_of(bool v6) { return v6 ? "/proc/self/net/tcp6" : "/proc/self/net/tcp"; }

// Whether the listener accepts connections to the loopback address of its family.
bool takes_loopback(const Listener& of) {
  if (of.row.local.find_first_not_of('0') == std::string::npos) return true;
  sockaddr_in6 v6{};
  in_addr v4{};
  v6.sin6_addr = in6addr_loopback;
  v4.s_addr = htonl(INADDR_LOOPBACK);
  std::string own;
  if (of.v6)
    for (const uint32_t word : v6.sin6_addr.s6_addr32) own += fmt::format("{:08X}", word);
  else
    own = fmt::format("{:08X}", v4.s_addr);
  return of.row.local == own;
}

// The listening sockets of the process, from the kernel's TCP tables.
std::vector<Listener> listeners_of(uint32_t pid, uint32_t uid) {
  const std::set<uint64_t> own = sockets_of(pid);
  std::vector<Listener> out;
  for (const bool v6 : {false, true})
    for (TcpRow& row : parse_tcp(read_some(table_of(v6), kTableBytes)))
      if (row.state == kListens && row.uid == uid && own.contains(row.inode))
        out.push_back({std::move(row), v6});
  return out;
}

// Inode of the socket on which the server's thread waits in accept(); 0: unreadable, or the thread does
// something else.
uint64_t accepting_inode(const ProcessLook& look, uint32_t pid) {
  for (const ThreadView& thread : look.threads) {
    if (thread.pid != pid || thread.name != kServerThread || !thread.call) continue;
    if (thread.call->number != SYS_accept && thread.call->number != SYS_accept4) continue;
    return socket_inode(link_target(fmt::format("/proc/{}/fd/{}", pid, thread.call->arguments[0])));
  }
  return 0;
}

Result<Listener> find_listener(const ProcessLook& look, uint32_t pid) {
  const std::string own = link_target("/proc/self/ns/net"),
                    its = link_target(fmt::format("/proc/{}/ns/net", pid));
  if (its.empty() || own != its)
    return fail(ErrorCode::kNotFound, "the process is in another network namespace");
  std::vector<Listener> all = listeners_of(pid, look.status.uid);
  if (const uint64_t inode = accepting_inode(look, pid); inode != 0)
    std::erase_if(all, [&](const Listener& l) { return l.row.inode != inode; });
  if (all.empty()) return fail(ErrorCode::kNotFound, "no listening socket of the process is known");
  if (all.size() > 1)
    return fail(ErrorCode::kNotFound,
                fmt::format("which of {} ports of the process is its is not known", all.size()));
  if (!takes_loopback(all[0]))
    return fail(ErrorCode::kNotFound, "it does not listen on the loopback address");
  return std::move(all[0]);
}

// One connection; closed at the end.
class DebugConnection {
 public:
  DebugConnection(Listener to, TimeNs until_ns) : to_(std::move(to)), until_ns_(until_ns) {}
  ~DebugConnection() {
    if (socket_ >= 0) ::close(socket_);
  }
  DebugConnection(const DebugConnection&) = delete;
  DebugConnection& operator=(const DebugConnection&) = delete;

  Status connect() {
    socket_ = ::socket(to_.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket_ < 0) return io::system_failure("a socket", errno);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    v6.sin6_port = htons(to_.row.local_port);
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v4.sin_port = htons(to_.row.local_port);
    const auto* address =
        to_.v6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
    if (::connect(socket_, address, to_.v6 ? sizeof v6 : sizeof v4) != 0 && errno != EINPROGRESS)
      return io::system_failure("it takes no connection", errno);
    if (const Status ready = wait(POLLOUT); !ready) return ready;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return io::system_failure("it takes no connection", error);
    return {};
  }

  // Checks who accepted the connection: another process may have taken the port meanwhile.
  Status check_peer(uint32_t pid, uint32_t uid) {
    const uint16_t own = own_port();
    const TimeNs until = std::min(until_ns_, mono() + kAcceptWithin);
    for (; mono() < until; pause_for(kAcceptEvery)) {
      for (const TcpRow& row : parse_tcp(read_some(table_of(to_.v6), kTableBytes))) {
        if (row.local_port != to_.row.local_port || row.remote_port != own || row.inode == 0) continue;
        if (row.uid == uid && sockets_of(pid).contains(row.inode)) return {};
        return fail(ErrorCode::kDenied, "another process answers on its port");
      }
    }
    return fail(ErrorCode::kLimit, "it accepts no connection: its interpreter may be blocked");
  }

  Result<std::string> ask(std::string_view request) {
    while (!request.empty()) {
      if (const Status ready = wait(POLLOUT); !ready) return tl::unexpected(ready.error());
      const ssize_t n = ::send(socket_, request.data(), request.size(), MSG_NOSIGNAL);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n < 0) return io::system_failure("it takes no request", errno);
      request.remove_prefix(static_cast<size_t>(n));
    }
    std::string out;
    std::array<char, 65536> buffer;
    for (;;) {
      if (const Status ready = wait(POLLIN); !ready) return tl::unexpected(ready.error());
      const ssize_t n = ::recv(socket_, buffer.data(), buffer.size(), 0);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n < 0) return io::system_failure("its answer broke off", errno);
      if (n == 0) return out;
      out.append(buffer.data(), static_cast<size_t>(n));
      if (out.size() > kServerBytes) return fail(ErrorCode::kLimit, "its answer is too long");
    }
  }

 private:
  uint16_t own_port() const {
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size) != 0) return 0;
    return ntohs(to_.v6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                        : reinterpret_cast<const sockaddr_in&>(own).sin_port);
  }

  Status wait(short what) {
    for (;;) {
      const TimeNs left = until_ns_ - mono();
      if (left <= 0) return fail(ErrorCode::kLimit, "it did not answer in time");
      pollfd entry{socket_, what, 0};
      const int ready = ::poll(&entry, 1, static_cast<int>(left / kNsPerMs) + 1);
      if (ready > 0) return {};
      if (ready < 0 && errno != EINTR) return io::system_failure("its socket", errno);
    }
  }

  const Listener to_;
  const TimeNs until_ns_;
  int socket_ = -1;
};

}  // namespace

std::vector<TcpRow> parse_tcp(std::string_view table, size_t most) {
  constexpr size_t kLocal = 1, kRemote = 2, kState = 3, kUid = 7, kInode = 9, kCells = 10;
  std::vector<TcpRow> out;
  for (const std::string_view line : split(table, '\n')) {
    if (out.size() >= most) break;
    std::array<std::string_view, kCells> cells;
    size_t n = 0;
    for (const std::string_view cell : split(line, ' '))
      if (!cell.empty() && n < kCells) cells[n++] = cell;
    TcpRow row;
    if (n == kCells && address_in(cells[kLocal], row.local, row.local_port) &&
        address_in(cells[kRemote], row.remote, row.remote_port) && number_in(cells[kState], row.state, 16) &&
        number_in(cells[kUid], row.uid, 10) && number_in(cells[kInode], row.inode, 10))
      out.push_back(std::move(row));
  }
  return out;
}

Result<std::string> http_body(std::string_view answer) {
  const size_t end = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.") || end == answer.npos || answer.size() < 12)
    return fail(ErrorCode::kInvalid, "its answer is not HTTP");
  const std::string_view status = answer.substr(9, 3);
  if (status != "200")
    return fail(ErrorCode::kInvalid, fmt::format("it answers with status {}", to_terminal(status)));
  const std::string_view body = answer.substr(end + 4);
  for (const std::string_view line : split(answer.substr(0, end), '\n')) {
    const size_t colon = line.find(':');
    if (colon == line.npos) continue;
    std::string name(colon, '\0');
    lower_ascii(line.substr(0, colon), name.data());
    const std::string_view value = trim(line.substr(colon + 1));
    if (name == "transfer-encoding")
      return fail(ErrorCode::kInvalid, "its answer has an encoding that is not known");
    if (name != "content-length") continue;
    size_t length = 0;
    if (!number_in(value, length, 10)) return fail(ErrorCode::kInvalid, "its answer has no sound length");
    if (body.size() < length) return fail(ErrorCode::kIo, "its answer broke off");
    return std::string(body.substr(0, length));
  }
  return std::string(body);
}

bool has_debug_server(const ProcessLook& look, uint32_t pid) {
  return std::any_of(look.threads.begin(), look.threads.end(),
                     [&](const ThreadView& t) { return t.pid == pid && t.name == kServerThread; });
}

Result<std::string> ask_debug_server(const ProcessLook& look, uint32_t pid, TimeNs within_ns) {
  auto listener = find_listener(look, pid);
  if (!listener) return tl::unexpected(listener.error());
  DebugConnection connection(std::move(*listener), mono() + within_ns);
  if (const Status connected = connection.connect(); !connected) return tl::unexpected(connected.error());
  if (const Status own = connection.check_peer(pid, look.status.uid); !own)
    return tl::unexpected(own.error());
  const auto answer = connection.ask(kStacksRequest);
  if (!answer) return tl::unexpected(answer.error());
  return http_body(*answer);
}

}  // namespace culprit::capture
