#include "io/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "io/child.h"
#include "io/descriptors.h"
#include "io/system_error.h"

namespace culprit::io {
namespace {

constexpr int kRoundMs = 50;
constexpr TimeNs kLastOutputNs = kNsPerSecond;  // after the end of a program
constexpr size_t kReasonBytes = 300;

struct ProgramPipe {
  Descriptor read, write;
};

Result<ProgramPipe> make_program_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_failure("a pipe", errno);
  return ProgramPipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

void unblock(const Descriptor& descriptor) { ::fcntl(descriptor.get(), F_SETFL, O_NONBLOCK); }

// A program that ends without reading its input must not end this one. SIGPIPE is blocked for the calling
// thread, and one that this thread caused is taken back.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const timespec at_once{};
    if (!sigismember(&before_, SIGPIPE))
      while (::sigtimedwait(&pipe_, nullptr, &at_once) > 0) {
      }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
};

// Moves the bytes of one program until it has closed its outputs, or a limit is reached. A service that the
// program started may keep them open for ever.
class Exchange {
 public:
  Exchange(const ProgramRun& run, Child& child, Descriptor in, Descriptor out, Descriptor err)
      : run_(run),
        child_(child),
        until_(steady_now() + run.within_ns),
        in_(std::move(in)),
        out_(std::move(out)),
        err_(std::move(err)) {}

  void move_all(ProgramEnd& end) {
    end.kind = ProgramEnd::Kind::kExited;
    if (run_.input.empty()) in_ = {};
    while (end.kind == ProgramEnd::Kind::kExited && (out_.is_open() || err_.is_open())) {
      if (is_over(end)) return;
      pollfd polled[] = {{in_.get(), POLLOUT, 0}, {out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}};
      if (::poll(polled, 3, kRoundMs) < 0 && errno != EINTR) return;
      if (in_.is_open() && polled[0].revents != 0) write_input();
      if (out_.is_open() && polled[1].revents != 0) read_output(end);
      if (err_.is_open() && polled[2].revents != 0) read_errors(end);
      if (ended_ns_ == 0 && child_.has_ended()) ended_ns_ = steady_now();
      if (ended_ns_ != 0 && steady_now() - ended_ns_ > kLastOutputNs) return;
    }
  }
  bool is_over(ProgramEnd& end) {
    if ((run_.stop && run_.stop->load()) || ends_early())
      end.kind = ProgramEnd::Kind::kStopped;
    else if (steady_now() >= until_)
      end.kind = ProgramEnd::Kind::kTimeout;
    return end.kind != ProgramEnd::Kind::kExited;
  }

 private:
  bool ends_early() {
    if (!run_.ends_early || steady_now() < ask_ns_) return false;
    const bool ends = run_.ends_early();
    ask_ns_ = steady_now() + ProgramRun::kAskEvery;
    return ends;
  }
  void write_input() {
    const ssize_t n = ::write(in_.get(), run_.input.data() + written_, run_.input.size() - written_);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) written_ += static_cast<size_t>(n);
    if (n <= 0 || written_ == run_.input.size()) in_ = {};
  }
  // Bytes read; 0 after an interruption. At the end the descriptor is closed.
  size_t read_part(Descriptor& from) {
    const ssize_t n = ::read(from.get(), part_.data(), part_.size());
    if (n > 0) return static_cast<size_t>(n);
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) from = {};
    return 0;
  }
  void read_output(ProgramEnd& end) {
    const size_t n = read_part(out_), room = run_.output_max - end.output.size();
    end.output.append(part_.data(), std::min(n, room));
    if (n > room) end.kind = ProgramEnd::Kind::kTooLong;
  }
  void read_errors(ProgramEnd& end) {
    const size_t n = read_part(err_);
    end.errors.append(part_.data(), std::min(n, ProgramEnd::kErrorBytes - end.errors.size()));
  }

  const ProgramRun& run_;
  Child& child_;
  const TimeNs until_;
  TimeNs ended_ns_ = 0;  // 0: it runs
  TimeNs ask_ns_ = steady_now() + ProgramRun::kAskEvery;
  Descriptor in_, out_, err_;
  size_t written_ = 0;
  std::array<char, 16384> part_{};
};

std::string one_line(std::string_view text, bool last) {
  text = trim(text);
  const size_t at = last ? text.rfind('\n') : text.find('\n');
  if (at != text.npos) text = last ? text.substr(at + 1) : text.substr(0, at);
  return shorten(to_terminal(trim(text)), kReasonBytes);
}

std::string reason_of(const ProgramRun& run, const ProgramEnd& end) {
  switch (end.kind) {
    case ProgramEnd::Kind::kTimeout:
      return fmt::format("did not end within {}", format_duration(run.within_ns));
    case ProgramEnd::Kind::kStopped:
      return run.ends_early ? "was ended early" : "was ended early, since the daemon stops";
    case ProgramEnd::Kind::kTooLong:
      return fmt::format("wrote more than {}", format_bytes(run.output_max));
    case ProgramEnd::Kind::kSignalled:
      return fmt::format("ended by signal {}", end.code);
    case ProgramEnd::Kind::kNotStarted:
    case ProgramEnd::Kind::kExited:
      break;
  }
  if (end.is_success()) return {};
  const std::string line = one_line(end.errors, run.last_error);
  return line.empty() ? fmt::format("exited with status {}", end.code) : line;
}

ProgramEnd not_started(const Error& error) {
  ProgramEnd out;
  out.reason = error.text;
  return out;
}

}  // namespace

ProgramEnd run_program(const ProgramRun& run) {
  auto in = make_program_pipe(), out = make_program_pipe(), err = make_program_pipe();
  if (!in || !out || !err) return not_started(!in ? in.error() : !out ? out.error() : err.error());
  auto child = Child::start({.path = run.path,
                             .arguments = run.words,
                             .environment = run.environment,
                             .descriptors = {in->read.get(), out->write.get(), err->write.get()}});
  if (!child) return not_started(child.error());
  in->read = {}, out->write = {}, err->write = {};
  for (const Descriptor* one : {&in->write, &out->read, &err->read}) unblock(*one);
  const NoPipeSignal no_signal;
  ProgramEnd end;
  Exchange exchange(run, *child, std::move(in->write), std::move(out->read), std::move(err->read));
  exchange.move_all(end);
  std::optional<ChildEnd> ended;
  while (end.kind == ProgramEnd::Kind::kExited && !ended) {
    ended = child->wait(kRoundMs * kNsPerMs);
    if (!ended && exchange.is_over(end)) break;
  }
  if (ended) {
    end.code = ended->signal != 0 ? ended->signal : ended->code;
    if (ended->signal != 0) end.kind = ProgramEnd::Kind::kSignalled;
  }
  end.reason = reason_of(run, end);
  return end;
}

}  // namespace culprit::io
