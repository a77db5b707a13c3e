#include "cli/attempt_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "app/program.h"
#include "app/run/leftovers.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/child_work.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kReportDescriptor = "CULPRIT_REPORT_DESCRIPTOR";
constexpr const char* kAttemptMemberVariable = "CULPRIT_ATTEMPT_MEMBER";
constexpr std::array kPassedOn = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr TimeNs kTermPatience = 3 * kNsPerSecond, kReportPatience = 10 * kNsPerSecond;
constexpr TimeNs kEndPatience = 5 * kNsPerSecond, kKillPatience = 10 * kNsPerSecond;
constexpr uint32_t kMemberMost = 1'000'000;

}  // namespace

int take_report_descriptor() {
  const char* value = std::getenv(kReportDescriptor);
  const int fd = value ? std::atoi(value) : -1;
  ::unsetenv(kReportDescriptor);
  if (fd < 3 || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return -1;
  // Started from /proc/self/exe, it is called "exe", and would count as a process of the job.
  ::prctl(PR_SET_NAME, "culprit");
  return fd;
}

std::optional<AttemptMember> take_attempt_member() {
  const char* value = std::getenv(kAttemptMemberVariable);
  const std::string text = value ? value : "";
  ::unsetenv(kAttemptMemberVariable);
  AttemptMember out;
  const char* const end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, out.number);
  if (number.ec != std::errc() || number.ptr == end || *number.ptr != '/') return std::nullopt;
  const auto count = std::from_chars(number.ptr + 1, end, out.count);
  const bool valid = count.ec == std::errc() && count.ptr == end && out.number < out.count;
  return valid && out.count <= kMemberMost ? std::optional(out) : std::nullopt;
}

std::string attempt_member_variable(const AttemptMember& member) {
  return fmt::format("{}={}/{}", kAttemptMemberVariable, member.number, member.count);
}

AttemptProcess::AttemptProcess(std::string mark) : mark_(std::move(mark)), group_(mark_) {
  sigemptyset(&received_);
  for (const int signal : kPassedOn) sigaddset(&received_, signal);
  sigaddset(&received_, SIGCHLD);
  sigprocmask(SIG_BLOCK, &received_, &old_mask_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

AttemptProcess::~AttemptProcess() {
  if (report_ >= 0) ::close(report_);
  sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

bool AttemptProcess::start(const std::vector<std::string>& words, std::vector<std::string> environment) {
  if (report_ >= 0) ::close(report_);
  report_ = ::memfd_create("culprit-report", MFD_CLOEXEC);
  environment.push_back(fmt::format("{}={}", app::kMarkVariable, mark_));
  environment.push_back(fmt::format("{}={}", kReportDescriptor, report_));
  const pid_t parent = ::getpid();
  child_ = ::fork();
  if (child_ < 0) report_error(std::string("no process for an attempt: ") + std::strerror(errno));
  if (child_ != 0) return child_ > 0;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) _exit(kCommandNotStarted);
  group_.enter();
  sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  ::fcntl(report_, F_SETFD, 0);
  for (const std::string& entry : environment) ::putenv(const_cast<char*>(entry.c_str()));
  app::start_again(words);
  _exit(kCommandNotStarted);
}

int AttemptProcess::next_signal(TimeNs until, siginfo_t& info) {
  int signal = 0;
  if (until == kNoTime) {
    signal = ::sigwaitinfo(&received_, &info);
  } else {
    const TimeNs rest = std::max<TimeNs>(0, until - steady_now());
    const timespec time{static_cast<time_t>(rest / kNsPerSecond), static_cast<long>(rest % kNsPerSecond)};
    signal = ::sigtimedwait(&received_, &info, &time);
  }
  if (signal <= 0) return 0;
  if (signal != SIGCHLD && signal != SIGUSR1 && signal != SIGUSR2) stopped_ = true;
  return signal;
}

std::optional<int> AttemptProcess::wait(TimeNs within) {
  const TimeNs until = within == kNoTime ? kNoTime : steady_now() + within;
  for (;;) {
    siginfo_t info{};
    const int signal = next_signal(until, info);
    if (signal != 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) ::kill(child_, signal);
    int status = 0;
    for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == child_) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (until != kNoTime && steady_now() >= until) return std::nullopt;
  }
}

std::optional<int> AttemptProcess::end(const std::function<std::optional<int>(TimeNs)>& wait) {
  ::kill(child_, SIGTERM);
  if (const auto ended = wait(kTermPatience)) return ended;
  for (const app::MarkedProcess& one : app::marked_processes(mark_))
    if (!one.name.starts_with("culprit")) ::kill(one.pid, SIGKILL);
  if (const auto ended = wait(kReportPatience)) return ended;
  ::kill(child_, SIGKILL);
  return wait(kReportPatience);
}

std::string AttemptProcess::report_text() const { return text_of_descriptor(report_); }

bool AttemptProcess::rest(TimeNs wait_ns) {
  const TimeNs until = steady_now() + wait_ns;
  const bool stopped = std::exchange(stopped_, false);
  while (!stopped_ && steady_now() < until) {
    siginfo_t info{};
    (void)next_signal(until, info);
  }
  return !std::exchange(stopped_, stopped || stopped_);
}

uint16_t unused_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  uint16_t out = 0;
  if (fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    out = ntohs(address.sin_port);
  if (fd >= 0) ::close(fd);
  return out;
}

bool end_leftovers(const std::string& mark, TimeNs since, std::string& left) {
  size_t ended = 0;
  const auto remaining = app::end_marked(mark, kEndPatience, kKillPatience, ended);
  if (ended > 0)
    report_error(fmt::format("{} that the attempt left {} ended",
                             ended == 1 ? "1 process" : fmt::format("{} processes", ended),
                             ended == 1 ? "was" : "were"));
  (void)app::remove_shared_memory(since);
  if (remaining.empty()) return true;
  left = fmt::format("{} ({}) cannot be ended{}", remaining[0].name, remaining[0].pid,
                     remaining[0].state == 'D' ? ", it waits in the kernel" : "");
  return false;
}

}  // namespace culprit::cli
