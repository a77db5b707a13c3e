#include "app/run/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "app/run/relay.h"
#include "base/clock.h"
#include "base/time.h"
#include "io/system_error.h"

namespace culprit::app {
namespace {

// Time within which the sentinel reports the same signal: processes of a group or of a job are signalled one
// after the other.
constexpr TimeNs kSentinelWithin = 100 * kNsPerMs;
constexpr TimeNs kDrainQuiet = 100 * kNsPerMs;  // wait after the child's end, while other processes hold its
                                                // output open
constexpr TimeNs kDrainMost = 2 * kNsPerSecond;
constexpr std::array kPassedOn = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

sigset_t set_of_passed_on() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kPassedOn) sigaddset(&set, signal);
  return set;
}

// Reports each signal that it receives as a byte, until it is killed or its parent ends. Never returns.
[[noreturn]] void be_sentinel(int report, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) _exit(0);
  // The sentinel must not hold our output open, since readers wait for its end.
  if (report != 3 && ::dup3(report, 3, O_CLOEXEC) < 0) _exit(1);
  ::close_range(4, UINT_MAX, 0);
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  const sigset_t set = set_of_passed_on();
  for (;;) {
    const int signal = ::sigwaitinfo(&set, nullptr);
    const char byte = static_cast<char>(signal);
    if (signal > 0 && ::write(3, &byte, 1) != 1) _exit(0);
  }
}

struct Pipe {
  int read = -1, write = -1;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return io::system_failure("a pipe", errno);
  return Pipe{ends[0], ends[1]};
}

}  // namespace

struct ChildCommand::Impl {
  sigset_t old_mask{};
  int signals = -1, sentinel_reports = -1;
  pid_t child = -1, sentinel = -1;
  Relay relay;
  std::map<pid_t, std::function<void(int)>> watched;
  std::map<int, std::function<void()>> descriptors;
  std::map<int, TimeNs> to_pass_on;    // signal -> when
  std::map<int, TimeNs> sentinel_got;  // signal -> when
  std::function<void()> later;         // due at later_ns
  TimeNs later_ns = 0;
  std::optional<TimeNs> ended_at;
  CommandEnd end;

  ~Impl() {
    if (sentinel > 0) {
      ::kill(sentinel, SIGKILL);
      ::waitpid(sentinel, nullptr, 0);
    }
    for (const int fd : {signals, sentinel_reports})
      if (fd >= 0) ::close(fd);
    sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  }

  Status begin(const CommandOptions& options);
  Status begin_sentinel();
  [[noreturn]] void become(const CommandOptions& options, int errors);
  void take_signals();
  void take_signal(const signalfd_siginfo& info);
  void take_reports();
  void pass_on_due(TimeNs now);
  void reap();
  int patience_ms(TimeNs now) const;
  bool is_over(TimeNs now) const;
};

Status ChildCommand::Impl::begin_sentinel() {
  auto pipe = make_pipe();
  if (!pipe) return tl::unexpected(pipe.error());
  const pid_t parent = ::getpid();
  sentinel = ::fork();
  if (sentinel == 0) be_sentinel(pipe->write, parent);
  ::close(pipe->write);
  sentinel_reports = pipe->read;
  ::fcntl(sentinel_reports, F_SETFL, O_NONBLOCK);
  return sentinel < 0 ? io::system_failure("a process for signals", errno) : Status();
}

// In the child: runs the command, or writes errno.
void ChildCommand::Impl::become(const CommandOptions& options, int errors) {
  relay.connect_child();
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &standard, nullptr);  // ignored by this program
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  for (const std::string& entry : options.environment) ::putenv(const_cast<char*>(entry.c_str()));
  std::vector<char*> words;
  for (const std::string& word : options.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  const int error = errno;
  (void)!::write(errors, &error, sizeof error);
  _exit(127);
}

Status ChildCommand::Impl::begin(const CommandOptions& options) {
  sigset_t blocked = set_of_passed_on();
  for (const int signal : {SIGCHLD, SIGWINCH}) sigaddset(&blocked, signal);
  sigprocmask(SIG_BLOCK, &blocked, &old_mask);
  signals = ::signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) return io::system_failure("a descriptor for signals", errno);
  if (Status begun = begin_sentinel(); !begun) return begun;
  if (Status opened = relay.open(); !opened) return opened;
  auto errors = make_pipe();
  if (!errors) return tl::unexpected(errors.error());
  child = ::fork();
  if (child == 0) become(options, errors->write);
  const int fork_error = errno;
  ::close(errors->write);
  relay.close_child_ends();
  int error = 0;
  ssize_t n = 0;
  while (child > 0 && (n = ::read(errors->read, &error, sizeof error)) < 0 && errno == EINTR) {
  }
  ::close(errors->read);
  if (child < 0) return io::system_failure("a process for the command", fork_error);
  if (n != sizeof error) return {};
  ::waitpid(child, nullptr, 0);
  child = -1;
  return io::system_failure(options.words[0], error);
}

void ChildCommand::Impl::take_signals() {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof info) == sizeof info) take_signal(info);
}

void ChildCommand::Impl::take_signal(const signalfd_siginfo& info) {
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGCHLD) return reap();
  if (signal == SIGWINCH) return relay.copy_window_size();
  end.interrupted = end.interrupted || signal == SIGINT;
  if (signal != SIGINT && signal != SIGUSR1 && signal != SIGUSR2) end.terminated = signal;
  if (info.ssi_code == SI_KERNEL) return;  // the terminal sent the signal: the whole group has it
  const TimeNs now = steady_now();
  const auto got = sentinel_got.find(signal);
  const bool group = got != sentinel_got.end() && now - got->second < kSentinelWithin;
  if (!group) to_pass_on.try_emplace(signal, now + kSentinelWithin);
}

void ChildCommand::Impl::take_reports() {
  std::array<char, 64> bytes;
  const ssize_t n = ::read(sentinel_reports, bytes.data(), bytes.size());
  if (n == 0)
    ::close(std::exchange(sentinel_reports, -1));  // the sentinel was killed: all signals are
                                                   // passed on
  for (ssize_t i = 0; i < n; ++i) {
    const int signal = bytes[static_cast<size_t>(i)];
    sentinel_got[signal] = steady_now();
    to_pass_on.erase(signal);
  }
}

void ChildCommand::Impl::pass_on_due(TimeNs now) {
  for (auto it = to_pass_on.begin(); it != to_pass_on.end();) {
    if (it->second > now) {
      ++it;
      continue;
    }
    if (child > 0 && !ended_at) ::kill(child, it->first);
    it = to_pass_on.erase(it);
  }
}

void ChildCommand::Impl::reap() {
  int status = 0;
  if (child > 0 && !ended_at && ::waitpid(child, &status, WNOHANG) == child) {
    ended_at = steady_now();
    if (WIFSIGNALED(status))
      end.signal = WTERMSIG(status);
    else
      end.code = WEXITSTATUS(status);
  }
  for (auto it = watched.begin(); it != watched.end();) {
    if (::waitpid(it->first, &status, WNOHANG) != it->first) {
      ++it;
      continue;
    }
    const auto call = std::move(it->second);
    it = watched.erase(it);
    call(status);
  }
}

int ChildCommand::Impl::patience_ms(TimeNs now) const {
  TimeNs until = now + 3600 * kNsPerSecond;
  for (const auto& [signal, due] : to_pass_on) until = std::min(until, due);
  if (later && !ended_at) until = std::min(until, std::max(now, later_ns));
  if (ended_at) until = std::min({until, *ended_at + kDrainMost, now + kDrainQuiet});
  // A callback may have lasted beyond the deadline; a negative timeout would make poll() wait forever.
  return static_cast<int>((std::max(until, now) - now + kNsPerMs - 1) / kNsPerMs);
}

bool ChildCommand::Impl::is_over(TimeNs now) const {
  if (!ended_at) return false;
  if (!relay.is_open()) return true;
  const bool quiet = now - std::max(*ended_at, relay.last_read_ns()) >= kDrainQuiet;
  return (quiet && !relay.has_pending()) || now - *ended_at >= kDrainMost;
}

ChildCommand::ChildCommand(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChildCommand::~ChildCommand() = default;

Result<std::unique_ptr<ChildCommand>> ChildCommand::start(const CommandOptions& options) {
  auto impl = std::make_unique<Impl>();
  if (Status begun = impl->begin(options); !begun) return tl::unexpected(begun.error());
  return std::unique_ptr<ChildCommand>(new ChildCommand(std::move(impl)));
}

pid_t ChildCommand::pid() const { return impl_->child; }
bool ChildCommand::has_two_streams() const { return impl_->relay.has_two_streams(); }
void ChildCommand::watch(pid_t pid, std::function<void(int)> ended) {
  impl_->watched[pid] = std::move(ended);
}
void ChildCommand::watch_descriptor(int fd, std::function<void()> ready) {
  impl_->descriptors[fd] = std::move(ready);
}
void ChildCommand::call_after(TimeNs delay_ns, std::function<void()> call) {
  impl_->later = std::move(call);
  impl_->later_ns = steady_now() + delay_ns;
}
void ChildCommand::tell(std::string_view text) { impl_->relay.tell(text); }

CommandEnd ChildCommand::wait(const Output& output) {
  Impl& o = *impl_;
  o.reap();
  for (TimeNs now = steady_now(); !o.is_over(now); now = steady_now()) {
    std::vector<pollfd> polled = {{o.signals, POLLIN, 0}, {o.sentinel_reports, POLLIN, 0}};
    for (const auto& [fd, ready] : o.descriptors) polled.push_back({fd, POLLIN, 0});
    const size_t own = polled.size();
    o.relay.add_polled(polled);
    if (::poll(polled.data(), polled.size(), o.patience_ms(now)) < 0) continue;
    now = steady_now();
    o.relay.move(std::span(polled).subspan(own), now, output);
    if (polled[1].revents) o.take_reports();
    if (polled[0].revents) o.take_signals();
    o.pass_on_due(steady_now());
    if (o.later && !o.ended_at && steady_now() >= o.later_ns) std::exchange(o.later, {})();
    for (size_t i = 2; i < own; ++i)
      if (polled[i].revents) o.descriptors.at(polled[i].fd)();
  }
  return o.end;
}

}  // namespace culprit::app
