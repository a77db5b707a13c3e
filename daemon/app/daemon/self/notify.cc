#include "app/daemon/self/notify.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/text.h"

namespace culprit::app {
namespace {

constexpr int kFirstDescriptor = 3;     // sd_listen_fds(3)
constexpr size_t kDescriptorsMax = 64;  // expected: the kernel log and perhaps sockets
// Below systemd's limit, and more than a line of `systemctl status`.
constexpr size_t kStatusBytes = 1000;

std::optional<int64_t> number_of(const char* text) {
  if (!text) return std::nullopt;
  int64_t out = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, out);
  if (error != std::errc() || stop != end || out < 0) return std::nullopt;
  return out;
}

// Replaces line breaks, since a line break would start another assignment.
std::string one_line(std::string_view text) {
  std::string out = shorten(to_utf8(text), kStatusBytes);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return out;
}

}  // namespace

int ServiceEnvironment::descriptor_named(std::string_view name) const {
  for (const HandedDescriptor& d : descriptors)
    if (d.name == name) return d.descriptor;
  return -1;
}

ServiceEnvironment parse_service_environment(const GetVariable& get, int own_pid) {
  ServiceEnvironment out;
  if (const char* socket = get("NOTIFY_SOCKET"); socket && (*socket == '/' || *socket == '@'))
    out.notify_socket = socket;
  const char* watched = get("WATCHDOG_PID");
  const auto watchdog_us = number_of(get("WATCHDOG_USEC"));
  constexpr int64_t kDayUs = int64_t{24} * 3600 * 1'000'000;
  if (watchdog_us && *watchdog_us <= kDayUs && (!watched || number_of(watched) == own_pid))
    out.watchdog_ns = *watchdog_us * kNsPerUs;
  const auto count = number_of(get("LISTEN_FDS"));
  if (!count || *count > static_cast<int64_t>(kDescriptorsMax) || number_of(get("LISTEN_PID")) != own_pid)
    return out;
  const char* listed = get("LISTEN_FDNAMES");
  const std::vector<std::string_view> names = split(listed ? listed : "", ':');
  for (size_t i = 0; i < static_cast<size_t>(*count); ++i)
    out.descriptors.push_back(
        {i < names.size() ? std::string(names[i]) : std::string(), kFirstDescriptor + static_cast<int>(i)});
  return out;
}

ServiceEnvironment read_service_environment() {
  ServiceEnvironment out =
      parse_service_environment([](const char* name) { return std::getenv(name); }, getpid());
  for (const HandedDescriptor& d : out.descriptors) {
    const int flags = fcntl(d.descriptor, F_GETFD);
    if (flags >= 0) fcntl(d.descriptor, F_SETFD, flags | FD_CLOEXEC);
  }
  for (const char* name :
       {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"})
    unsetenv(name);
  return out;
}

Notify::Notify(const std::string& notify_socket) : socket_(notify_socket) {
  if (socket_.empty()) return;
  descriptor_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

Notify::~Notify() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status Notify::send(const std::string& lines) {
  if (socket_.empty()) return {};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (descriptor_ < 0 || socket_.size() >= sizeof address.sun_path)
    return fail(ErrorCode::kIo, fmt::format("{}: no socket can be made for it", socket_));
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_[0] == '@') address.sun_path[0] = '\0';  // an abstract name has no final NUL
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  ssize_t sent = 0;
  do
    sent = ::sendto(descriptor_, lines.data(), lines.size(), MSG_NOSIGNAL,
                    reinterpret_cast<const sockaddr*>(&address), size);
  while (sent < 0 && errno == EINTR);
  if (sent < 0)
    return fail(ErrorCode::kIo,
                fmt::format("{}: cannot notify the service manager: {}", socket_, std::strerror(errno)));
  return {};
}

Status Notify::ready(std::string_view status) { return send("READY=1\nSTATUS=" + one_line(status)); }
Status Notify::reloading(TimeNs monotonic_now) {
  return send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", monotonic_now / kNsPerUs));
}
Status Notify::stopping() { return send("STOPPING=1"); }
Status Notify::status(std::string_view sentence) { return send("STATUS=" + one_line(sentence)); }
Status Notify::feed_watchdog() { return send("WATCHDOG=1"); }

}  // namespace culprit::app
