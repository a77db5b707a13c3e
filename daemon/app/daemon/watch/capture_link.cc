#include "app/daemon/watch/capture_link.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "base/limits.h"
#include "io/installed.h"
#include "io/system_error.h"

namespace culprit::app {
namespace {

constexpr TimeNs kStopEvery = 100 * kNsPerMs;       // until `stop` is read again
constexpr TimeNs kBeyondBudget = 5 * kNsPerSecond;  // it keeps to its budget, but the machine may be loaded

TimeNs steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// One end of a stream to the program, and its pid if it is a child. -1: none.
struct Peer {
  int channel = -1;
  pid_t pid = 0;
  ~Peer() {
    if (channel >= 0) ::close(channel);
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
};

bool connect_to(const std::string& path, Peer& peer) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  peer.channel = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (peer.channel < 0) return false;
  if (::connect(peer.channel, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return true;
  ::close(std::exchange(peer.channel, -1));
  return false;
}

// errno or 0.
int spawn_program(const std::string& program, Peer& peer) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return errno;
  peer.channel = pair[0];
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, pair[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pair[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  char name[] = "culprit-capture", path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", locale[] = "LC_ALL=C";
  char* arguments[] = {name, nullptr};
  char* environment[] = {path, locale, nullptr};
  const int error = posix_spawn(&peer.pid, program.c_str(), &actions, &attributes, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(pair[1]);
  if (error != 0) peer.pid = 0;
  return error;
}

bool send_all(int channel, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(channel, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// Cuts received bytes into lines.
class LineCutter {
 public:
  LineCutter(CaptureLines& out, size_t most) : out_(out), most_(most) {}
  void add(std::string_view bytes) {
    for (const char c : bytes) {
      if (c != '\n') {
        if (line_.size() <= limits::kLineBytes) line_ += c;
        continue;
      }
      all_ += line_.size();
      if (line_.size() > limits::kLineBytes || all_ > most_)
        ++out_.dropped;
      else if (!line_.empty())
        out_.lines.push_back(line_);
      line_.clear();
    }
  }

 private:
  CaptureLines& out_;
  const size_t most_;
  std::string line_;
  size_t all_ = 0;
};

}  // namespace

Result<CaptureLines> run_capture(const CaptureWay& way, const capture::Request& request,
                                 const CaptureLimits& bounds) {
  Peer peer;
  if (!connect_to(way.socket, peer)) {
    const std::string program = way.program.empty() ? io::helper_path("culprit-capture") : way.program;
    if (const int error = spawn_program(program, peer); error != 0) return io::system_failure(program, error);
  }
  if (!send_all(peer.channel, capture::request_line(request) + "\n"))
    return io::system_failure("culprit-capture takes no request", errno);
  CaptureLines out;
  LineCutter cutter(out, bounds.bytes);
  const TimeNs until = steady_ns() + request.budget_ns + kBeyondBudget;
  std::array<char, 65536> buffer;
  for (;;) {
    const TimeNs left = until - steady_ns();
    if (left <= 0 || (bounds.stop && *bounds.stop)) break;
    pollfd wait{peer.channel, POLLIN, 0};
    const TimeNs step = bounds.stop ? std::min(left, kStopEvery) : left;
    if (::poll(&wait, 1, static_cast<int>(step / kNsPerMs) + 1) <= 0) continue;
    const ssize_t n = ::read(peer.channel, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    cutter.add({buffer.data(), static_cast<size_t>(n)});
  }
  return out;
}

}  // namespace culprit::app
