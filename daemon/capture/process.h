// Looks at a process by /proc alone: states of its threads, and the files that blocked ones wait for. Nothing
// here stops the process or asks a file system: a dead server must not block the look. Reading a process's
// memory may still block in the kernel, so the caller is a process that may be killed.
//
// Blocking; one thread. Owns nothing of the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/proc_text.h"

namespace culprit::capture {

// What the kernel waits for on behalf of a thread.
struct WaitingFile {
  std::string path;            // as the process sees it; without controls
  std::string mount, fs_type;  // empty: unknown
  bool served = false;         // is_served(fs_type)
};

struct ThreadView {
  uint32_t pid = 0, tid = 0;  // a worker process is listed with its parent
  std::string name;
  char state = '?';
  std::string wchan;  // the kernel's function in which it sleeps; empty: it runs, or not readable
  std::optional<ProcSyscall> call;
  std::optional<WaitingFile> file;  // of a thread in D, or of one that waits for a server
  std::vector<std::string> kernel;  // /proc/PID/stack, where readable
  uint64_t switches = 0;            // context switches so far, of a blocked one
  bool stuck = false;               // blocked, and it did not run between two looks

  // Uninterruptible, or in a function that waits for a file server.
  bool blocked() const;
};

struct ProcessLook {
  ProcStat stat;
  ProcStatus status;
  bool frozen = false;              // by its control group
  std::vector<ThreadView> threads;  // its own, the main thread first, then those of its children
  uint64_t more_threads = 0;        // beyond the limits
  size_t children = 0;
  RankEnvironment environment;
  bool is_launcher = false;  // it gave a child its rank, and is none itself

  // Threads of the process itself, not of a child.
  bool has_state(char state) const;
  bool any_blocked() const;
  // A stuck thread that has a file, else any; null: none.
  const ThreadView* stuck() const;
};

// Whether a program of this name only starts another one and waits: a shell around the rank's program.
bool is_wrapper(std::string_view name);

class ProcessReader {
 public:
  // `proc` and `groups`: where the file systems of processes and of control groups are mounted.
  explicit ProcessReader(std::string proc = "/proc", std::string groups = "/sys/fs/cgroup")
      : proc_(std::move(proc)), groups_(std::move(groups)) {}

  // Nothing: there is no such process.
  std::optional<ProcStat> stat(uint32_t pid) const;
  // The same with its threads. Reads the environment last: that alone may block for the process's memory.
  std::optional<ProcessLook> look(uint32_t pid) const;
  RankEnvironment environment(uint32_t pid) const;
  // Marks the blocked threads that did not run since `before`: one that reads a disk is blocked for moments.
  static void mark_stuck(const ProcessLook& before, ProcessLook& now);

 private:
  std::string folder(uint32_t pid) const { return proc_ + "/" + std::to_string(pid); }
  void add_threads(uint32_t pid, ProcessLook& out) const;
  std::optional<ThreadView> thread(uint32_t pid, uint32_t tid) const;
  std::optional<WaitingFile> file_of(uint32_t pid, const ProcSyscall& call) const;
  bool is_frozen(uint32_t pid) const;

  const std::string proc_, groups_;
};

// Up to `most` bytes of a file; empty if it cannot be read.
std::string read_some(const std::string& path, size_t most = 64 << 10);

}  // namespace culprit::capture
