#include "app/daemon/watch/helper_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/limits.h"
#include "io/child.h"
#include "io/descriptors.h"
#include "io/installed.h"
#include "io/system_error.h"

namespace culprit::app {
namespace {

constexpr TimeNs kStopEvery = 100 * kNsPerMs;       // interval of checks of `stop`
constexpr TimeNs kBeyondBudget = 5 * kNsPerSecond;  // margin beyond the program's budget, for a loaded
                                                    // machine

// One end of a stream to the program, which is a child unless systemd started it. Closes the stream before it
// kills the child.
struct Peer {
  io::Child child;
  io::Descriptor channel;
};

bool connect_to(const std::string& path, Peer& peer) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  io::Descriptor channel(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!channel.is_open()) return false;
  if (::connect(channel.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
  peer.channel = std::move(channel);
  return true;
}

Status start_program(const std::string& program, const std::string& name, Peer& peer) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return io::system_failure(program, errno);
  peer.channel = io::Descriptor(pair[0]);
  const io::Descriptor theirs(pair[1]);
  auto child = io::Child::start({.path = program,
                                 .arguments = {name},
                                 .environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"},
                                 .descriptors = {theirs.get(), theirs.get(), io::ChildProgram::kNull},
                                 .kill = io::ChildKill::kProcess});  // does not kill the guard of a stopped
                                                                     // process
  if (!child) return tl::unexpected(child.error());
  peer.child = std::move(*child);
  return {};
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
  LineCutter(HelperLines& out, size_t most) : out_(out), most_(most) {}
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
  HelperLines& out_;
  const size_t most_;
  std::string line_;
  size_t all_ = 0;
};

}  // namespace

Result<HelperLines> ask_helper(const HelperWay& way, std::string_view request, const HelperLimits& limits) {
  Peer peer;
  if (!connect_to(way.socket, peer)) {
    const std::string program = way.program.empty() ? io::helper_path(way.name) : way.program;
    if (Status started = start_program(program, way.name, peer); !started)
      return tl::unexpected(started.error());
  }
  if (!send_all(peer.channel.get(), std::string(request) + "\n"))
    return io::system_failure(way.name + " takes no request", errno);
  HelperLines out;
  LineCutter cutter(out, limits.bytes);
  const TimeNs until = steady_now() + limits.within_ns + kBeyondBudget;
  std::array<char, 65536> buffer;
  for (;;) {
    const TimeNs left = until - steady_now();
    if (left <= 0 || (limits.stop && *limits.stop)) break;
    pollfd wait{peer.channel.get(), POLLIN, 0};
    const TimeNs step = limits.stop ? std::min(left, kStopEvery) : left;
    if (::poll(&wait, 1, static_cast<int>(step / kNsPerMs) + 1) <= 0) continue;
    const ssize_t n = ::read(peer.channel.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    cutter.add({buffer.data(), static_cast<size_t>(n)});
  }
  return out;
}

}  // namespace culprit::app
