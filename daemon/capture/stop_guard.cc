#include "capture/stop_guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "capture/clock.h"
#include "capture/process.h"

namespace culprit::capture {
namespace {

constexpr TimeNs kLookEvery = 5 * kNsPerMs;
constexpr TimeNs kToolEnds = 3 * kNsPerSecond;  // after the capture was killed
constexpr int kDetachLooks = 25;
constexpr TimeNs kDetachEvery = 10 * kNsPerMs;
constexpr uint64_t bit_of(int signal) { return uint64_t{1} << (signal - 1); }
constexpr uint64_t kStops = bit_of(SIGSTOP) | bit_of(SIGTSTP) | bit_of(SIGTTIN) | bit_of(SIGTTOU);

// Messages from the capture to its guard, and the guard's exit status.
enum Word : char { kClean = 'c', kUnclean = 'u' };
enum Outcome : int { kAsItWas = 0, kContinued = 1, kTraced = 2 };

struct Moment {
  StopView view;
  uint64_t caught = 0;
};

class Guard {
 public:
  Guard(const Target& target, int from) : target_(target), from_(from) {}

  int run() {
    for (;;) {
      look();
      pollfd wait{from_, POLLIN, 0};
      if (::poll(&wait, 1, static_cast<int>(kLookEvery / kNsPerMs)) <= 0) continue;
      char word = 0;
      const ssize_t n = ::read(from_, &word, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n == 1 && word == kClean) return kAsItWas;
      if (n == 1 && word == kUnclean) return release();
      if (n == 1) {  // the number of the tool's process
        (void)!::read(from_, &tool_, sizeof tool_);
        continue;
      }
      // The capture was killed, and its tool with it.
      for (const TimeNs until = mono() + kToolEnds; mono() < until && tool_lives();) pause_for(kLookEvery);
      return release();
    }
  }

 private:
  bool tool_lives() const {
    if (tool_ <= 0) return true;
    const auto stat = reader_.stat(static_cast<uint32_t>(tool_));
    return stat && stat->state != 'Z' && stat->state != 'X';
  }

  std::optional<Moment> moment() const {
    const auto stat = reader_.stat(target_.pid);
    const auto status = parse_status(read_some(fmt::format("/proc/{}/status", target_.pid)));
    if (!stat || !status || stat->start_ticks != target_.start_ticks) return std::nullopt;
    return Moment{{stat->state, status->tracer != 0, (status->pending & kStops) != 0, true}, status->caught};
  }

  void look() {
    auto now = moment();
    if (!now) return;
    now->view.tool_lives = tool_lives();
    watch_.add(now->view);
  }

  // Sends SIGCONT, because a stop may be pending for a thread that has not been scheduled since. SIGCONT
  // cancels this stop, and has no effect on a running process without a handler.
  int release() const {
    if (watch_.asked()) return kAsItWas;
    auto now = moment();
    if (now && !now->view.traced && (now->caught & bit_of(SIGCONT)) == 0)
      ::kill(static_cast<pid_t>(target_.pid), SIGCONT);
    const bool was_stopped = now && now->view.state == 'T';
    for (int i = 0; i < kDetachLooks; ++i) {
      now = moment();
      if (!now || (now->view.state != 'T' && now->view.state != 't'))
        return was_stopped ? kContinued : kAsItWas;
      pause_for(kDetachEvery);
    }
    if (now->view.traced) return kTraced;
    ::kill(static_cast<pid_t>(target_.pid), SIGCONT);
    return kContinued;
  }

  const Target target_;
  const int from_;
  const ProcessReader reader_;
  StopWatch watch_;
  int32_t tool_ = 0;
};

[[noreturn]] void guard(const Target& target, int from) {
  ::setsid();  // a signal to the capture's group or session does not end the guard
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, 0);
  // Closes the capture's output in the guard, so that a reader sees its end while the guard lives.
  if (from != 0) ::dup2(from, 0);
  ::syscall(SYS_close_range, 1U, ~0U, 0);
  ::_exit(Guard(target, 0).run());
}

}  // namespace

void StopWatch::add(const StopView& now) {
  if (now.traced) {
    pending_ = now.stop_pending;
    return;
  }
  if (!now.tool_lives) return;  // its end may have stopped the process
  stopped_ = now.state == 'T';
  pending_ = pending_ && stopped_;
}

StopGuard::StopGuard(const Target& target) : target_(target) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return;
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(pipe[1]);
    guard(target, pipe[0]);
  }
  ::close(pipe[0]);
  to_ = pipe[1];
}

StopGuard::~StopGuard() { end(false); }

void StopGuard::started(pid_t tool) {
  char text[1 + sizeof(int32_t)] = {'t'};
  const int32_t number = tool;
  __builtin_memcpy(text + 1, &number, sizeof number);
  if (to_ >= 0) (void)!::write(to_, text, sizeof text);
}

std::string StopGuard::end(bool clean) {
  if (to_ < 0) return {};
  const char word = clean ? kClean : kUnclean;
  (void)!::write(to_, &word, 1);
  ::close(to_);
  to_ = -1;
  int status = 0;
  while (pid_ > 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) return {};
  if (WEXITSTATUS(status) == kContinued) return "the process was left stopped by it and was continued";
  return WEXITSTATUS(status) == kTraced ? "the process is traced by another program now" : "";
}

}  // namespace culprit::capture
