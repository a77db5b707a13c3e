// The command of `culprit run` as a child, and its output on the way to where ours goes.
//
// The child is in our process group and our session, so a terminal's signals and job control reach it as
// without us. Its standard input is ours. Its output goes through a pipe, or a pseudo-terminal where ours is
// a terminal; both streams through one where ours are one, so that lines keep their order.
//
// A signal sent to this process alone is passed on once. One that the whole group or all processes of a job
// got is not: the child has it already. A sentinel, a forked process for nothing else, tells them apart.
//
// One thread. The process must have no other thread when start() is called. Owns the child until it ends.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

struct CommandEnd {
  int code = 0;              // of exit
  int signal = 0;            // that killed it; 0: none
  bool interrupted = false;  // Ctrl-C, or SIGINT sent to us
  bool terminated = false;   // another signal that ends was sent to us
  // As a shell has it.
  int status() const { return signal != 0 ? 128 + signal : code; }
};

struct CommandOptions {
  std::vector<std::string> words;
  std::vector<std::string> environment;  // added to ours: NAME=VALUE
};

class ChildCommand {
 public:
  // Called with what the child wrote. Stream 1: standard error, where it is another than standard output.
  using Output = std::function<void(size_t stream, std::string_view bytes)>;

  // kNotFound, kDenied: the command cannot be run.
  static Result<std::unique_ptr<ChildCommand>> start(const CommandOptions& options);
  ~ChildCommand();
  ChildCommand(const ChildCommand&) = delete;

  pid_t pid() const;
  // Whether standard error is a stream of its own.
  bool has_two_streams() const;
  // Another child whose end wait() reports, as waitpid's status.
  void watch(pid_t pid, std::function<void(int status)> ended);
  // A descriptor; `ready` is called within wait() when it is readable.
  void watch_descriptor(int fd, std::function<void()> ready);
  // Called once within wait(), if the child still runs then.
  void call_after(TimeNs delay_ns, std::function<void()> call);
  // Passes the output on until the child has ended and nothing more comes.
  CommandEnd wait(const Output& output);
  // Writes to standard error, on a line of its own on a terminal. Within wait() only.
  void tell(std::string_view text);

 private:
  struct Impl;
  explicit ChildCommand(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::app
