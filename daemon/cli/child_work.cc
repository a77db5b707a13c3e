#include "cli/child_work.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/clock.h"

namespace culprit::cli {
namespace {

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

std::optional<std::string> in_child(const std::function<std::string()>& work, TimeNs within,
                                    const std::function<bool()>& goes_on) {
  const int out = ::memfd_create("culprit-work", MFD_CLOEXEC);
  if (out < 0) return std::nullopt;
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(::getppid() == parent && write_all(out, work()) ? 0 : 1);
  }
  const TimeNs until = steady_now() + within;
  int status = 1;
  pid_t ended = 0;
  while (child > 0 && (ended = ::waitpid(child, &status, WNOHANG)) == 0) {
    if (goes_on() && steady_now() < until) continue;
    ::kill(child, SIGKILL);
    break;
  }
  // One that cannot be killed, on a dead mount, remains; AttemptProcess collects it.
  const bool well = child > 0 && ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  std::optional<std::string> text;
  if (well) text = text_of_descriptor(out);
  ::close(out);
  return text;
}

std::string text_of_descriptor(int fd) {
  std::string text;
  std::array<char, 65536> part{};
  for (ssize_t n = 0; (n = ::pread(fd, part.data(), part.size(), static_cast<off_t>(text.size()))) > 0;)
    text.append(part.data(), static_cast<size_t>(n));
  return text;
}

}  // namespace culprit::cli
