// Inspects a process through /proc only: states of its threads, and the files that blocked threads wait
// for. Nothing here stops the process or accesses its file systems: a dead file server must not block the
// inspection. Reading a process's memory may still block in the kernel, so the caller must be a process
// that may be killed.
//
// Blocking; one thread. Owns nothing of the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/proc_text.h"

namespace culprit::capture {

// The file for which a thread is blocked in the kernel.
struct WaitingFile {
  std::string path;            // as the process sees it; without controls
  std::string mount, fs_type;  // empty: unknown
  bool served = false;         // is_served(fs_type)
};

struct ThreadView {
  uint32_t pid = 0, tid = 0;  // a worker process is listed with its parent
  std::string name;
  char state = '?';
  std::string wchan;  // kernel function in which the thread sleeps; empty: it runs, or unreadable
  std::optional<ProcSyscall> call;
  std::optional<WaitingFile> file;  // of a thread in state D, or of one that waits for a file server
  std::vector<std::string> kernel;  // /proc/PID/stack, where readable
  uint64_t switches = 0;            // context switches so far, of a blocked one
  bool stuck = false;               // blocked, and it did not run between two looks

  // Whether the thread is uninterruptible, or in a function that waits for a file server.
  bool blocked() const;
};

struct ProcessLook {
  ProcStat stat;
  ProcStatus status;
  bool frozen = false;              // by its control group
  std::vector<ThreadView> threads;  // the process's threads, main thread first, then its children's
  uint64_t more_threads = 0;        // beyond the limits
  size_t children = 0;
  RankEnvironment environment;
  bool is_launcher = false;  // it gave a child its rank, and is none itself

  // Whether a thread of the process itself, not of a child, has this state.
  bool has_state(char state) const;
  bool any_blocked() const;
  // A stuck thread with a known file, else any stuck thread; null: none.
  const ThreadView* stuck() const;
};

// Whether a program of this name only starts another one and waits, such as a shell around the rank's
// program.
bool is_wrapper(std::string_view name);

class ProcessReader {
 public:
  // `proc` and `groups`: mount points of procfs and of the cgroup file system.
  explicit ProcessReader(std::string proc = "/proc", std::string groups = "/sys/fs/cgroup")
      : proc_(std::move(proc)), groups_(std::move(groups)) {}

  // Nothing: there is no such process.
  std::optional<ProcStat> stat(uint32_t pid) const;
  // Same, with the threads. Reads the environment last, because only that may block while the process's
  // memory is locked.
  std::optional<ProcessLook> look(uint32_t pid) const;
  RankEnvironment environment(uint32_t pid) const;
  // Marks blocked threads that did not run since `before`. A thread that only reads a disk is blocked
  // briefly, and not marked.
  static void mark_stuck(const ProcessLook& before, ProcessLook& now);

 private:
  std::string folder(uint32_t pid) const { return proc_ + "/" + std::to_string(pid); }
  void add_threads(uint32_t pid, ProcessLook& out) const;
  std::optional<ThreadView> thread(uint32_t pid, uint32_t tid) const;
  std::optional<WaitingFile> file_of(uint32_t pid, const ProcSyscall& call) const;
  bool is_frozen(uint32_t pid) const;

  const std::string proc_, groups_;
};

// Reads at most `most` bytes of a file; empty if unreadable.
std::string read_some(const std::string& path, size_t most = 64 << 10);

}  // namespace culprit::capture
