// A helper program in a child process: the capture, a plugin's host, sendmail. Any thread, one at a time for
// each Child. Safe in multi-threaded programs: only posix_spawn's system calls run between fork and exec.
//
// The program inherits only the named descriptors and environment. No signal is blocked or ignored. The
// program leads its own process group, so the terminal's signals do not reach it.
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

// Processes that kill() and the destructor end.
enum class ChildKill : uint8_t {
  kGroup,    // also processes that the program left in its group
  kProcess,  // only the program: others of its group end by themselves
};

struct ChildProgram {
  static constexpr int kNull = -1;  // /dev/null

  std::string path;
  std::vector<std::string> arguments;         // the first is the name that the program sees
  std::vector<std::string> environment = {};  // "NAME=value"
  // Descriptors copied to 0, 1, 2, …; borrowed for the call. Missing standard streams are /dev/null.
  std::vector<int> descriptors = {};
  ChildKill kill = ChildKill::kGroup;
};

struct ChildEnd {
  int code = 0;         // exit status; -1: another process waited for it
  int signal = 0;       // signal that ended the program; 0: it exited
  uint64_t cpu_ns = 0;  // CPU time of the program and the children that it waited for

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
  // Kills a running program and waits at most a second: a process in an uninterruptible call is left behind.
  ~Child();

  pid_t pid() const { return pid_; }  // also after its end
  // Whether wait() has returned the end. Until then the kernel does not reuse the pid.
  bool is_waited_for() const { return state_ != State::kRuns; }
  // Whether the program ended, without blocking; wait() must still be called.
  bool has_ended() const;
  // Returns the program's end, once. nullopt: still running after `within_ns`, or already waited for.
  std::optional<ChildEnd> wait(TimeNs within_ns);
  // Sends SIGKILL, see ChildKill. No effect once waited for: the pid may belong to another process.
  void kill() const;
  // Kills the program and waits. False if it does not end within this time; the destructor then does not try
  // again.
  bool end(TimeNs within_ns);

 private:
  enum class State : uint8_t { kNone, kRuns, kEnded, kLeft };
  void swap(Child& other) noexcept;

  pid_t pid_ = 0;
  State state_ = State::kNone;
  ChildKill kill_ = ChildKill::kGroup;
};

}  // namespace culprit::io
