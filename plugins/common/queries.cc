#include "common/queries.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace health {
namespace {

constexpr size_t kMessageBytesMax = 64 << 10;
// A step of the wall clock looks like a long wait. So does a single late tick.
constexpr int kTicksMin = 3;

void close_others(int open_fd) {
#ifdef SYS_close_range
  const bool below = open_fd == 3 || syscall(SYS_close_range, 3u, unsigned(open_fd) - 1, 0) == 0;
  if (below && syscall(SYS_close_range, unsigned(open_fd) + 1, ~0u, 0) == 0) return;
#endif
  for (int i = 3; i < 1024; ++i) {
    if (i != open_fd) close(i);
  }
}

}  // namespace

Queries::Queries(Options options, Answer answer) : options_(options), answer_(std::move(answer)) {}

Queries::~Queries() {
  for (const auto& child : children_) {
    close(child->socket);
    kill(child->pid, SIGKILL);
    left_.push_back(child->pid);
  }
  // One that ends at once is no zombie of the host. Waiting for the others could last for ever.
  for (int i = 0; i < 20 && !left_.empty(); ++i) {
    reap();
    if (!left_.empty()) ::poll(nullptr, 0, 1);
  }
}

std::unique_ptr<Queries::Child> Queries::start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  auto child = std::make_unique<Child>();
  const pid_t parent = getpid();
  child->pid = fork();
  if (child->pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return nullptr;
  }
  if (child->pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGCHLD, SIGALRM, SIGSEGV, SIGBUS, SIGABRT}) {
      signal(number, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    close_others(ends[1]);  // the daemon's channel above all: it must see its end when the detector ends
    serve(ends[1]);
  }
  close(ends[1]);
  child->socket = ends[0];
  return child;
}

void Queries::serve(int socket) {
  std::string buffer(kMessageBytesMax, '\0');
  while (true) {
    const ssize_t got = recv(socket, buffer.data(), buffer.size(), 0);
    if (got <= 0) _exit(0);
    std::string answer;
    try {
      answer = answer_(std::string(buffer.data(), got));
    } catch (...) {
      _exit(1);
    }
    answer.resize(std::min(answer.size(), kMessageBytesMax - 1));
    answer += '.';  // an empty message would read like an end
    if (::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) _exit(1);
  }
}

bool Queries::send(Child& child, const std::string& subject) {
  return ::send(child.socket, subject.data(), subject.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         ssize_t(subject.size());
}

Queries::Child* Queries::common() {
  const auto found =
      std::find_if(children_.begin(), children_.end(), [](const auto& child) { return !child->own; });
  return found == children_.end() ? nullptr : found->get();
}

// It ends by itself: it has nothing to do, and its socket closes.
void Queries::leave(const Child* child) {
  close(child->socket);
  left_.push_back(child->pid);
  const auto is_it = [child](const auto& other) { return other.get() == child; };
  children_.erase(std::remove_if(children_.begin(), children_.end(), is_it), children_.end());
}

bool Queries::asked(const std::string& subject) const {
  return std::any_of(children_.begin(), children_.end(), [&](const auto& child) {
    return std::find(child->waiting.begin(), child->waiting.end(), subject) != child->waiting.end();
  });
}

void Queries::ask(const std::string& subject, int64_t now_ns) {
  if (asked(subject)) return;
  const auto hung = hung_.find(subject);
  const bool own = hung != hung_.end();
  if (own && (now_ns < hung->second.again_ns || hung->second.pid > 0)) return;
  Child* child = own ? nullptr : common();
  if (child && !send(*child, subject)) {
    if (!child->waiting.empty()) return;  // full, or about to be found dead by poll
    leave(child);
    child = nullptr;
  }
  if (!child) {
    auto started = start();
    if (!started || !send(*started, subject)) return;  // no process to be had; the next round asks again
    started->own = own;
    child = started.get();
    children_.push_back(std::move(started));
  }
  if (child->waiting.empty()) child->since_ns = now_ns, child->ticks = 0;
  child->waiting.push_back(subject);
}

void Queries::read(Child& child, int64_t now_ns, std::vector<Result>& results) {
  buffer_.resize(kMessageBytesMax);
  while (!child.waiting.empty()) {
    const ssize_t got = recv(child.socket, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    // It died with questions unread. What it answered before is still to be had.
    if (got < 0 && errno == ECONNRESET) continue;
    if (got <= 0) {
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) child.ticks = -1;  // it died
      return;
    }
    std::string subject = std::move(child.waiting.front());
    child.waiting.pop_front();
    hung_.erase(subject);
    const int64_t waited_ns = now_ns - child.since_ns;
    results.push_back({std::move(subject), Outcome::kAnswered, buffer_.substr(0, got - 1), waited_ns});
    child.since_ns = now_ns;
    child.ticks = 0;
  }
}

void Queries::give_up(std::unique_ptr<Child> child, Outcome outcome, int64_t now_ns,
                      std::vector<Result>& results) {
  kill(child->pid, SIGKILL);
  close(child->socket);
  left_.push_back(child->pid);
  const std::string subject = child->waiting.front();
  child->waiting.pop_front();
  results.push_back({subject, outcome, {}, now_ns - child->since_ns});
  hung_[subject] = {now_ns + options_.retry_ns, child->pid};
  for (const std::string& other : child->waiting) ask(other, now_ns);
}

std::vector<Queries::Result> Queries::poll(int64_t now_ns) {
  std::vector<Result> results;
  reap();
  std::vector<std::unique_ptr<Child>> lost;
  for (auto& child : children_) {
    if (child->waiting.empty()) continue;
    ++child->ticks;
    read(*child, now_ns, results);
    const bool died = child->ticks < 0;
    const bool late = now_ns - child->since_ns >= options_.timeout_ns && child->ticks >= kTicksMin;
    if (!child->waiting.empty() && (died || late)) lost.push_back(std::move(child));
  }
  children_.erase(std::remove(children_.begin(), children_.end(), nullptr), children_.end());
  for (size_t i = children_.size(); i-- > 0;) {
    if (children_[i]->own && children_[i]->waiting.empty()) leave(children_[i].get());
  }
  for (auto& child : lost) {
    const Outcome outcome = child->ticks < 0 ? Outcome::kDied : Outcome::kHangs;
    give_up(std::move(child), outcome, now_ns, results);
  }
  return results;
}

void Queries::rest() {
  for (size_t i = children_.size(); i-- > 0;) {
    if (children_[i]->waiting.empty()) leave(children_[i].get());
  }
}

void Queries::reap() {
  const auto ended = [this](pid_t pid) {
    const pid_t got = waitpid(pid, nullptr, WNOHANG);
    if (got == 0 || (got < 0 && errno != ECHILD)) return false;
    for (auto& [subject, hung] : hung_) {
      if (hung.pid == pid) hung.pid = -1;
    }
    return true;
  };
  left_.erase(std::remove_if(left_.begin(), left_.end(), ended), left_.end());
}

}  // namespace health
