// culprit-end-tasks: ends the processes of a job on this host. It reads one request (app/tasks/end_tasks.h)
// from standard input and prints one line of counts. It is started by culpritd, or by systemd for each
// connection to its socket (culprit-end-tasks@.service, off by default), with only the right to signal.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>

#include "app/tasks/end_tasks.h"
#include "io/request_line.h"

namespace culprit::app {
namespace {

constexpr TimeNs kRequestWithin = 5 * kNsPerSecond;

int run() {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::signal(SIGPIPE, SIG_IGN);
  EndCounts counts;
  const auto request =
      parse_end_request(io::read_request_line(STDIN_FILENO, kEndRequestBytes, kRequestWithin));
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
