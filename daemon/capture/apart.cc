#include "capture/apart.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "capture/clock.h"
#include "capture/tool.h"
#include "io/system_error.h"

namespace culprit::capture {
namespace {

constexpr uid_t kNobody = 65534;
constexpr rlim_t kReaderBytes = rlim_t{512} << 20, kReaderSeconds = 10;
constexpr size_t kReasonBytes = 512;
// Size limit of an answer; each text is preceded by its length.
constexpr size_t kAnswerMost =
    1024 + kToolThreads * (64 + kFrameBytes + kToolFrames * (sizeof(uint64_t) + kFrameBytes));

// Writes numbers and texts in sequence; the same program reads them.
class Writer {
 public:
  void number(uint64_t value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value, size_t most) {
    value = value.substr(0, most);
    number(value.size());
    out_ += value;
  }
  const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

// Reads untrusted bytes. After an error, all numbers are 0 and all texts empty.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    if (bytes_.size() < sizeof value) return bad_ = true, 0;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string text(size_t most) {
    const uint64_t size = number();
    if (size > most || size > bytes_.size()) return bad_ = true, std::string();
    std::string out(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return out;
  }
  bool bad() const { return bad_; }

 private:
  std::string_view bytes_;
  bool bad_ = false;
};

std::string written(const Result<Stacks>& read) {
  Writer out;
  out.number(read.has_value());
  if (!read) {
    out.text(read.error().text, kReasonBytes);
    return out.bytes();
  }
  const size_t threads = std::min(read->threads.size(), kToolThreads);
  out.number(read->dropped + (read->threads.size() - threads));
  out.number(threads);
  for (size_t i = 0; i < threads; ++i) {
    const StackedThread& thread = read->threads[i];
    out.text(thread.name, kFrameBytes);
    out.number(thread.tid);
    out.number(thread.holds_gil);
    const size_t frames = std::min(thread.frames.size(), kToolFrames);
    out.number(frames);
    for (size_t n = 0; n < frames; ++n) out.text(thread.frames[n], kFrameBytes);
  }
  return out.bytes();
}

Result<Stacks> answer_in(std::string_view bytes) {
  Reader in(bytes);
  if (in.number() == 0) {
    const std::string reason = in.text(kReasonBytes);
    return fail(ErrorCode::kInvalid, in.bad() ? "its text could not be read" : reason);
  }
  Stacks out;
  out.dropped = in.number();
  const uint64_t threads = in.number();
  for (uint64_t i = 0; i < std::min<uint64_t>(threads, kToolThreads) && !in.bad(); ++i) {
    StackedThread& thread = out.threads.emplace_back();
    thread.name = in.text(kFrameBytes);
    thread.tid = in.number();
    thread.holds_gil = in.number() != 0;
    const uint64_t frames = in.number();
    for (uint64_t n = 0; n < std::min<uint64_t>(frames, kToolFrames) && !in.bad(); ++n)
      thread.frames.push_back(in.text(kFrameBytes));
  }
  if (in.bad()) return fail(ErrorCode::kInvalid, "its text could not be read");
  return out;
}

bool give_up_rights() {
  ::setfsuid(::geteuid());
  if (::geteuid() == 0) {
    const gid_t group = kNobody;
    if (::setgroups(1, &group) != 0 || ::setresgid(group, group, group) != 0 ||
        ::setresuid(kNobody, kNobody, kNobody) != 0)
      return false;
  }
  const rlimit bytes{kReaderBytes, kReaderBytes}, seconds{kReaderSeconds, kReaderSeconds}, none{0, 0};
  ::setrlimit(RLIMIT_DATA, &bytes);
  ::setrlimit(RLIMIT_CPU, &seconds);
  ::setrlimit(RLIMIT_FSIZE, &none);
  return give_up_capabilities();
}

[[noreturn]] void read_in_child(StackReader read, std::string_view text, int to) {
  // After a change of the user, which undoes it.
  constexpr int kAnswer = 3;
  if (to != kAnswer) ::dup2(to, kAnswer);
  ::syscall(SYS_close_range, kAnswer + 1U, ~0U, 0);
  if (!give_up_rights()) ::_exit(126);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string answer = written(read(text));
  for (std::string_view rest = answer; !rest.empty();) {
    const ssize_t n = ::write(kAnswer, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    rest.remove_prefix(static_cast<size_t>(n));
  }
  ::_exit(0);
}

}  // namespace

Result<Stacks> read_apart(StackReader read, std::string_view text, TimeNs within_ns) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return io::system_failure("a pipe", errno);
  const TimeNs until = mono() + within_ns;
  const pid_t pid = ::fork();
  if (pid == 0) read_in_child(read, text, pipe[1]);
  const int error = errno;
  ::close(pipe[1]);
  if (pid < 0) {
    ::close(pipe[0]);
    return io::system_failure("a process", error);
  }
  const auto answer = read_output(pipe[0], kAnswerMost, until);
  ::close(pipe[0]);
  ::kill(pid, SIGKILL);  // it has answered, or is late
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!answer) return fail(ErrorCode::kLimit, "its text took too long to read");
  if (answer->empty())
    return fail(ErrorCode::kInvalid,
                WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL
                    ? fmt::format("its text ended the reader by signal {}", WTERMSIG(status))
                    : "its text could not be read without rights");
  return answer_in(*answer);
}

}  // namespace culprit::capture
