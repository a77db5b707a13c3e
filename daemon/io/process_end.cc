#include "io/process_end.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "io/descriptors.h"

namespace culprit::io {
namespace {

// Polling interval if the kernel has no pidfd (before Linux 5.3, or a system call filter).
constexpr int kLookMs = 2;
constexpr TimeNs kPollMost = 1'000'000 * kNsPerMs;

TimeNs clock_of_ends() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

bool is_zombie_or_exited(pid_t pid) {
  siginfo_t info{};
  const int failed = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
  return failed != 0 ? errno == ECHILD : info.si_pid != 0;
}

}  // namespace

bool ends_within(pid_t pid, TimeNs within_ns) {
  const TimeNs until = clock_of_ends() + std::max<TimeNs>(within_ns, 0);
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.is_open() && errno == ESRCH) return true;
  for (;;) {
    if (is_zombie_or_exited(pid)) return true;
    const TimeNs left = until - clock_of_ends();
    if (left <= 0) return false;
    // Rounded up, as 0 ms would not wait.
    const int left_ms = static_cast<int>((std::min(left, kPollMost) + kNsPerMs - 1) / kNsPerMs);
    pollfd end{process.get(), POLLIN, 0};
    const int ready = ::poll(&end, 1, process.is_open() ? left_ms : std::min(left_ms, kLookMs));
    // The process ended, but its tracer has not been notified yet.
    if (ready > 0 && !is_zombie_or_exited(pid)) ::poll(nullptr, 0, std::min(left_ms, kLookMs));
  }
}

}  // namespace culprit::io
