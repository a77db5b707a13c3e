// A program that runs in a process of its own and does a job for this one: the capture, a plugin's host,
// sendmail. Any thread, one at a time for each Child; of a program with many threads too, since nothing runs
// between the fork and the exec but system calls of posix_spawn.
//
// The program gets nothing that it is not given: its descriptors and its environment are exactly those
// named, no signal is blocked or ignored, and it leads a process group of its own, so a signal of the
// terminal does not reach it.
//
// Not for a command that takes this process's terminal and signals (app/run/child), a process that must die
// with its parent or give up rights before the exec (capture/tool, app/run/private_daemon), and a copy of
// this process that runs no program.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::io {

// What kill() and the destructor end.
enum class ChildKill : uint8_t {
  kGroup,    // also processes that the program left in its group
  kProcess,  // the program alone: others of its group end by themselves
};

struct ChildProgram {
  static constexpr int kNull = -1;  // /dev/null

  std::string path;
  std::vector<std::string> arguments;         // the first is the name that the program sees
  std::vector<std::string> environment = {};  // "NAME=value"
  // Copied to 0, 1, 2, …; borrowed for the call. Standard streams without one are /dev/null.
  std::vector<int> descriptors = {};
  ChildKill kill = ChildKill::kGroup;
};

struct ChildEnd {
  int code = 0;         // exit status; -1: it was not this process that waited for it
  int signal = 0;       // that ended it; 0: it exited
  uint64_t cpu_ns = 0;  // of the program and the children that it waited for

  bool is_success() const { return code == 0 && signal == 0; }
};

class Child {
 public:
  Child() = default;  // none
  // An error names the path and the system's reason.
  static Result<Child> start(const ChildProgram& program);
  Child(Child&& other) noexcept { swap(other); }
  Child& operator=(Child&& other) noexcept {
    swap(other);
    return *this;
  }
  // Kills what still runs and waits for a second at most: a process in an uninterruptible call is left.
  ~Child();

  pid_t pid() const { return pid_; }  // also after its end
  // Until wait() has returned its end the number is the program's own.
  bool is_waited_for() const { return state_ != State::kRuns; }
  // Whether it ended; wait() has still to be called. At once.
  bool has_ended() const;
  // How it ended, once; nothing: it runs after `within_ns`, or was waited for before. No longer kills.
  std::optional<ChildEnd> wait(TimeNs within_ns);
  // SIGKILL, see ChildKill. Nothing once it was waited for: the number may be another's.
  void kill() const;
  // Kills it, and waits. False: it does not end within this time, and the destructor does not try again.
  bool end(TimeNs within_ns);

 private:
  enum class State : uint8_t { kNone, kRuns, kEnded, kLeft };
  void swap(Child& other) noexcept;

  pid_t pid_ = 0;
  State state_ = State::kNone;
  ChildKill kill_ = ChildKill::kGroup;
};

}  // namespace culprit::io
