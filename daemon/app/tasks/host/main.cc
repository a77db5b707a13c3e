// culprit-end-tasks: ends the processes of a job on this host. It reads one request (app/tasks/end_tasks.h)
// from standard input and prints one line of counts. It is started by culpritd, or by systemd for each
// connection to its socket (culprit-end-tasks@.service, off by default), with only the right to signal.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "app/tasks/end_tasks.h"
#include "base/clock.h"

namespace culprit::app {
namespace {

constexpr TimeNs kRequestWithin = 5 * kNsPerSecond;

// Up to a newline or the end.
std::string read_request() {
  std::string out;
  std::array<char, 65536> buffer;
  const TimeNs until = steady_now() + kRequestWithin;
  while (out.find('\n') == out.npos && out.size() <= kEndRequestBytes) {
    pollfd wait{STDIN_FILENO, POLLIN, 0};
    const TimeNs left = until - steady_now();
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left / kNsPerMs) + 1) < 0) break;
    const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    out.append(buffer.data(), static_cast<size_t>(n));
  }
  return out.substr(0, out.find('\n'));
}

int run() {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::signal(SIGPIPE, SIG_IGN);
  EndCounts counts;
  const auto request = parse_end_request(read_request());
  if (request)
    counts = end_tasks(*request, [&](uint32_t pid) { return why_not_ended("/proc", request->job, pid); });
  else
    counts.why = "the request is refused: " + request.error().text;
  const std::string answer = to_line(counts) + "\n";
  return ::write(STDOUT_FILENO, answer.data(), answer.size()) == static_cast<ssize_t>(answer.size()) &&
                 request && counts.left == 0
             ? 0
             : 1;
}

}  // namespace
}  // namespace culprit::app

int main() { return culprit::app::run(); }
