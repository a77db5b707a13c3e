// The command of `culprit run` as a child process, and its output on the way to our output.
//
// The child is in our process group and session, so a terminal's signals and job control reach it as without
// us. The child inherits our standard input. Its output goes through a pipe, or a pseudo-terminal if ours is
// a terminal. If our standard output and standard error are the same, the child's share one channel, so that
// lines keep their order.
//
// A signal sent to this process alone is passed on once. A signal that the whole group or all processes of a
// job got is not passed on: the child already has it. A sentinel, a forked process for this purpose only,
// tells the two cases apart.
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
  int code = 0;              // exit code
  int signal = 0;            // that killed it; 0: none
  bool interrupted = false;  // Ctrl-C, or SIGINT sent to us
  int terminated = 0;        // the last other terminating signal that was sent to us; 0: none
  // As a shell has it.
  int status() const { return signal != 0 ? 128 + signal : code; }
};

struct CommandOptions {
  std::vector<std::string> words;
  std::vector<std::string> environment;  // added to ours: NAME=VALUE
};

class ChildCommand {
 public:
  // Called with the child's output. Stream 1: standard error, if it differs from standard output.
  using Output = std::function<void(size_t stream, std::string_view bytes)>;

  // kNotFound, kDenied: the command cannot be run.
  static Result<std::unique_ptr<ChildCommand>> start(const CommandOptions& options);
  ~ChildCommand();
  ChildCommand(const ChildCommand&) = delete;

  pid_t pid() const;
  // Whether standard error is separate from standard output.
  bool has_two_streams() const;
  // Another child whose end wait() reports, with waitpid's status.
  void watch(pid_t pid, std::function<void(int status)> ended);
  // Calls `ready` within wait() when the descriptor is readable.
  void watch_descriptor(int fd, std::function<void()> ready);
  // Calls `call` once within wait(), if the child is still running then.
  void call_after(TimeNs delay_ns, std::function<void()> call);
  // Passes the output on until the child has ended and its output is complete.
  CommandEnd wait(const Output& output);
  // Writes to standard error; on a terminal, on a separate line. Within wait() only.
  void tell(std::string_view text);

 private:
  struct Impl;
  explicit ChildCommand(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::app
