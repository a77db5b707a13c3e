#include "io/container.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace culprit::io {
namespace {

constexpr size_t kIdDigits = 64, kFileBytes = 64 << 10;

bool is_id(std::string_view text) {
  return text.size() == kIdDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// "cri-containerd-<id>.scope", "docker-<id>.scope", "libpod-<id>.scope", "crio-<id>", "<id>".
std::string_view id_in(std::string_view part) {
  if (part.ends_with(".scope")) part.remove_suffix(6);
  if (part.size() < kIdDigits) return {};
  const std::string_view id = part.substr(part.size() - kIdDigits),
                         before = part.substr(0, part.size() - kIdDigits);
  const bool named = before.empty() || before.back() == '-' || before.back() == ':';
  return named && is_id(id) ? id : std::string_view();
}

std::optional<std::string> content(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string out;
  std::array<char, 4096> buffer;
  ssize_t n = 0;
  while (out.size() < kFileBytes && (n = ::read(fd, buffer.data(), buffer.size())) > 0)
    out.append(buffer.data(), static_cast<size_t>(n));
  ::close(fd);
  return n < 0 && out.empty() ? std::nullopt : std::optional(std::move(out));
}

bool has_ended(int pidfd) {
  pollfd ended{pidfd, POLLIN, 0};
  return pidfd >= 0 && ::poll(&ended, 1, 0) != 0;
}

std::vector<std::string_view> parts_of(std::string_view path) { return split(path, '/'); }

}  // namespace

std::string_view container_in(std::string_view cgroup) {
  for (const std::string_view line : split(cgroup, '\n')) {
    std::string_view found;  // the innermost id: containers may be nested
    for (const std::string_view part : parts_of(line))
      if (const std::string_view id = id_in(part); !id.empty()) found = id;
    if (!found.empty()) return found;
  }
  return {};
}

bool is_in_own_pids(std::string_view status) {
  for (const std::string_view line : split(status, '\n')) {
    if (!line.starts_with("NSpid:")) continue;
    const std::string_view numbers = trim(line.substr(6));
    return numbers.find_first_of(" \t") != numbers.npos;
  }
  return false;
}

Principal principal_of(uint32_t uid, uint32_t pid, int pidfd, const std::string& proc) {
  if (uid != 0 && uid != ::geteuid()) return uid;
  if (pid == static_cast<uint32_t>(::getpid())) return uid;
  const Principal unknown = Principal::pod("");
  if (pid == 0) return unknown;
  const auto text = [&](const char* name) { return content(fmt::format("{}/{}/{}", proc, pid, name)); };
  const auto own = [&](const char* name) { return content(fmt::format("{}/self/{}", proc, name)); };
  const auto groups = text("cgroup"), status = text("status"), users = text("uid_map");
  if (!groups || !status || !users || groups->empty() || has_ended(pidfd)) return unknown;
  const std::string_view id = container_in(*groups);
  const auto own_groups = own("cgroup");
  const std::string_view own_id = own_groups ? container_in(*own_groups) : std::string_view();
  if (!id.empty()) return id == own_id ? Principal(uid) : Principal::pod(id);
  return is_in_own_pids(*status) || users != own("uid_map") ? unknown : Principal(uid);
}

std::optional<Principal> peer_of(int descriptor) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD, of Linux 6.5
  int pidfd = -1;
  size = sizeof pidfd;
  if (::getsockopt(descriptor, SOL_SOCKET, kPeerPidfd, &pidfd, &size) != 0) pidfd = -1;
  const Principal out = principal_of(peer.uid, static_cast<uint32_t>(peer.pid), pidfd);
  if (pidfd >= 0) ::close(pidfd);
  return out;
}

std::optional<Principal> container_of_log(std::string_view path) {
  const std::vector<std::string_view> parts = parts_of(path);
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const std::string_view next = parts[i + 1];
    // pods/NAMESPACE_POD_UID/CONTAINER/0.log
    if (parts[i] == "pods" && i + 3 < parts.size() && std::count(next.begin(), next.end(), '_') == 2)
      return Principal::pod(next.substr(next.rfind('_') + 1));
    const bool docker = parts[i] == "containers" || parts[i] == "overlay-containers";
    if (!docker) continue;
    // containers/POD_NAMESPACE_CONTAINER-ID.log, containers/ID/ID-json.log
    const std::string_view name = next.substr(0, next.rfind(".log"));
    if (const std::string_view id = id_in(name); !id.empty()) return Principal::pod(id);
  }
  return std::nullopt;
}

}  // namespace culprit::io
