#include "app/run/relay.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "io/system_error.h"

namespace culprit::app {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr int kTellMs = 1000;  // limit of waiting: a reader that does not read gets no message

bool are_one(int a, int b) {
  struct stat first {
  }, second{};
  if (::fstat(a, &first) != 0 || ::fstat(b, &second) != 0) return false;
  return first.st_dev == second.st_dev && first.st_ino == second.st_ino && first.st_rdev == second.st_rdev;
}

struct Ends {
  int from = -1, child = -1;
};

// A pseudo-terminal that changes no byte, since the terminal itself does.
bool open_terminal(int like, Ends& out) {
  const int from = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  std::array<char, 128> name{};
  const bool made = from >= 0 && ::grantpt(from) == 0 && ::unlockpt(from) == 0 &&
                    ::ptsname_r(from, name.data(), name.size()) == 0;
  const int child = made ? ::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
  if (child < 0) {
    if (from >= 0) ::close(from);
    return false;
  }
  termios settings{};
  if (::tcgetattr(like, &settings) == 0) {
    settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    settings.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL | TOSTOP);
    (void)::tcsetattr(child, TCSANOW, &settings);
  }
  out = {from, child};
  return true;
}

bool open_pipe(Ends& out) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  out = {ends[0], ends[1]};
  return true;
}

}  // namespace

Relay::~Relay() {
  for (const Channel& channel : channels_)
    for (const int fd : {channel.from, channel.child})
      if (fd >= 0) ::close(fd);
}

Status Relay::open() {
  if (Status added = add_channel(STDOUT_FILENO); !added) return added;
  if (are_one(STDOUT_FILENO, STDERR_FILENO)) return {};
  return add_channel(STDERR_FILENO);
}

Status Relay::add_channel(int to) {
  Ends ends;
  const bool terminal = ::isatty(to) && open_terminal(to, ends);
  if (!terminal && !open_pipe(ends)) return io::system_failure("a pipe for the output", errno);
  ::fcntl(ends.from, F_SETFL, O_NONBLOCK);
  channels_.push_back({ends.from, ends.child, to, terminal});
  copy_window_size();
  return {};
}

void Relay::connect_child() const {
  ::dup2(channels_[0].child, STDOUT_FILENO);
  ::dup2(channels_.back().child, STDERR_FILENO);
}

void Relay::close_child_ends() {
  for (Channel& channel : channels_) ::close(std::exchange(channel.child, -1));
}

void Relay::copy_window_size() const {
  for (const Channel& channel : channels_) {
    winsize size{};
    if (channel.terminal && channel.from >= 0 && ::ioctl(channel.to, TIOCGWINSZ, &size) == 0)
      (void)::ioctl(channel.from, TIOCSWINSZ, &size);
  }
}

bool Relay::is_open() const {
  return !std::ranges::all_of(channels_, [](const Channel& channel) { return channel.closed(); });
}

bool Relay::has_pending() const {
  return std::ranges::any_of(channels_, [](const Channel& channel) { return !channel.pending.empty(); });
}

void Relay::add_polled(std::vector<pollfd>& polled) const {
  for (const Channel& channel : channels_)
    polled.push_back(channel.pending.empty() ? pollfd{channel.from, POLLIN, 0}
                                             : pollfd{channel.to, POLLOUT, 0});
}

void Relay::move(std::span<const pollfd> polled, TimeNs now, const Output& output) {
  for (size_t i = 0; i < channels_.size(); ++i) {
    if (!polled[i].revents) continue;
    Channel& channel = channels_[i];
    if (channel.pending.empty()) {
      read(channel, i, output);
      last_read_ns_ = now;
    }
    // A file or an idle reader accepts the bytes at once; for others, poll() waits.
    pollfd ready{channel.to, POLLOUT, 0};
    while (!channel.pending.empty() && ::poll(&ready, 1, 0) == 1) write(channel);
  }
}

void Relay::read(Channel& channel, size_t stream, const Output& output) {
  channel.pending.resize(kReadBytes);
  channel.written = 0;
  const ssize_t n = ::read(channel.from, channel.pending.data(), kReadBytes);
  channel.pending.resize(n > 0 ? static_cast<size_t>(n) : 0);
  if (n > 0) return output(stream, channel.pending);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  ::close(std::exchange(channel.from, -1));  // the end; EIO: no process has the terminal open
}

// Call when the reader accepts at least a part.
void Relay::write(Channel& channel) {
  const size_t part = std::min<size_t>(channel.pending.size() - channel.written, PIPE_BUF);
  const char* const bytes = channel.pending.data() + channel.written;
  const ssize_t n = ::write(channel.to, bytes, part);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) {
    channel.pending.clear();
    // The reader is gone or the disk is full: the child's next write fails as it would without us.
    if (channel.from >= 0) ::close(std::exchange(channel.from, -1));
    return;
  }
  channel.in_line = bytes[n - 1] != '\n';
  channel.written += static_cast<size_t>(n);
  if (channel.written == channel.pending.size()) channel.pending.clear();
}

void Relay::tell(std::string_view text) {
  std::string out(text);
  if (channels_.back().in_line && channels_.back().terminal) out.insert(0, "\n");
  channels_.back().in_line = false;
  for (std::string_view rest = out; !rest.empty();) {
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&ready, 1, kTellMs) != 1) return;
    const ssize_t n = ::write(STDERR_FILENO, rest.data(), std::min<size_t>(rest.size(), PIPE_BUF));
    if (n <= 0) return;
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace culprit::app
