// culprit-capture: inspects processes of a job that makes no progress, or queries NCCL's RAS service in the
// network namespaces of some processes. It reads one request (capture/request.h) from standard input and
// prints the lines of each process. It is started by culpritd, or by systemd for each connection to its
// socket (culprit-capture@.service), with only the right to trace.
//
//
// Each process is inspected by a separate child: the kernel may block the child as long as the process's
// memory is locked. A blocked child is killed, and only the state is reported.
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "capture/capture.h"
#include "capture/clock.h"
#include "capture/pod_ras.h"
#include "capture/tool.h"
#include "io/request_line.h"

namespace culprit::capture {
namespace {

constexpr TimeNs kRequestWithin = 5 * kNsPerSecond;
constexpr TimeNs kOneWithin = 15 * kNsPerSecond;  // a look, two tools and a signal
constexpr TimeNs kToEnd = kNsPerSecond;           // time reserved between a tool's deadline and the child's

void make_harmless() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::umask(077);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
}

void write_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(to, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

struct Child {
  Target target;
  pid_t pid = 0;
  int output = -1;
  TimeNs until_ns = 0;
  std::string text;
};

class Captures {
 public:
  explicit Captures(const Request& request) : request_(request), until_ns_(mono() + request.budget_ns) {}

  void run() {
    capture_all();
    if (captured_ || asks_ras() || request_.all || mono() >= until_ns_) return;
    request_.programs = true;
    next_ = 0;
    capture_all();
  }

 private:
  void capture_all() {
    for (;;) {
      while (next_ < request_.targets.size() && children_.size() < request_.at_once && mono() < until_ns_)
        begin(request_.targets[next_++]);
      if (children_.empty()) break;
      wait();
      const TimeNs now = mono();
      std::erase_if(children_, [&](Child& child) { return is_over(child, now); });
    }
    for (; next_ < request_.targets.size(); ++next_)
      give_up(request_.targets[next_], "no time was left for it");
  }

  void begin(const Target& target) {
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) != 0) return give_up(target, "no pipe for it");
    const TimeNs within = std::min(asks_ras() ? kPodRasWithin : kOneWithin, until_ns_ - mono());
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      write_all(pipe[1], answer_of(target, within));
      ::_exit(0);
    }
    ::close(pipe[1]);
    if (pid > 0) return children_.push_back({target, pid, pipe[0], mono() + within + kToEnd, {}});
    ::close(pipe[0]);
    give_up(target, "no process for it");
  }

  bool asks_ras() const { return request_.ras_port != 0; }

  // In the child.
  std::string answer_of(const Target& target, TimeNs within) const {
    if (asks_ras()) return ras_lines(target, ask_pod_ras(target, request_.ras_port, within));
    const Answer answer = capture_process(request_, target, within);
    // An empty line: it is no rank.
    return (answer.is_rank ? answer_line(request_, answer) : std::string()) + "\n";
  }

  void wait() {
    std::vector<pollfd> polled;
    TimeNs first = children_.front().until_ns;
    for (const Child& child : children_) {
      polled.push_back({child.output, POLLIN, 0});
      first = std::min(first, child.until_ns);
    }
    const TimeNs left = std::max<TimeNs>(0, first - mono());
    ::poll(polled.data(), polled.size(), static_cast<int>(left / kNsPerMs) + 1);
    for (size_t i = 0; i < polled.size(); ++i)
      if (polled[i].revents != 0) read_from(children_[i]);
  }

  void read_from(Child& child) const {
    std::array<char, 65536> buffer;
    const ssize_t n = ::read(child.output, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) return;
    if (n > 0 && child.text.size() <= (asks_ras() ? 3 * kPodRasBytes : 2 * kAnswerBytes))
      return void(child.text.append(buffer.data(), static_cast<size_t>(n)));
    ::close(child.output);
    child.output = -1;
  }

  bool is_over(Child& child, TimeNs now) {
    if (child.output >= 0 && now < child.until_ns) return false;
    if (child.output >= 0) ::close(child.output);
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, WNOHANG);  // a child that the kernel blocks is left to init
    captured_ = captured_ || child.text != "\n";
    if (child.text.ends_with('\n'))
      write_all(STDOUT_FILENO, child.text.size() > 1 ? child.text : std::string());
    else
      give_up(child.target, "a look into it took too long and was ended: the kernel blocks it");
    return true;
  }

  void give_up(const Target& target, const char* why) const {
    write_all(STDOUT_FILENO, asks_ras() ? ras_lines(target, fail(ErrorCode::kIo, why))
                                        : answer_line(request_, look_briefly(target, why)) + "\n");
  }

  Request request_;
  const TimeNs until_ns_;
  size_t next_ = 0;
  bool captured_ = false;  // a rank, or a process that could not be inspected
  std::vector<Child> children_;
};

int serve() {
  make_harmless();
  const auto request = parse_request(io::read_request_line(STDIN_FILENO, kRequestBytes, kRequestWithin));
  if (!request) {
    std::fprintf(stderr, "culprit-capture: %s\n", request.error().text.c_str());
    return 2;
  }
  // CAP_SYS_ADMIN comes from a systemd drop-in and is only for entering network namespaces. Root keeps it,
  // to read kernel stacks.
  if (request->ras_port == 0 && ::geteuid() != 0 && !give_up_capability(CAP_SYS_ADMIN)) {
    std::fprintf(stderr, "culprit-capture: cannot give up CAP_SYS_ADMIN\n");
    return 2;
  }
  Captures(*request).run();
  return 0;
}

}  // namespace
}  // namespace culprit::capture

int main(int argc, char**) {
  if (argc != 1) {
    std::fputs("culprit-capture: culpritd starts it and gives it a request; it has no options\n", stderr);
    return 2;
  }
  return culprit::capture::serve();
}
