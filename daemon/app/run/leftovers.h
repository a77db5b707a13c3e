// The processes of one `culprit run --retries`: each has a mark in its environment, or descends from this
// process, which adopts orphans. Programs that set their title overwrite their environment, and a run that
// was killed has no descendants: each sign covers what the other misses. Where this user may write the own
// control group, the processes are in one of their own too. A killed torchrun leaves its ranks running; the
// next attempt may begin when none is left. Sees only this user's processes, and those in the group.
// Blocking; any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace culprit::app {

constexpr const char* kMarkVariable = "CULPRIT_ATTEMPTS_OF";

struct MarkedProcess {
  pid_t pid = 0;
  std::string name;  // name of the program, as shortened by the kernel
  char state = '?';  // state in /proc/PID/stat; 'D': waits in the kernel and cannot be killed
};

// A unique mark: this process, its start, its namespace of processes, and random digits.
std::string make_mark();

// A control group for the run's processes where this user may have one (attempt_group.h); else does nothing.
// One per process, for its life. The functions below then count its processes too.
class RunGroup {
 public:
  explicit RunGroup(const std::string& mark);
  ~RunGroup();  // removes the group
  RunGroup(const RunGroup&) = delete;
  void enter() const;  // in the child, before it becomes an attempt

 private:
  bool made_ = false;
};

// The processes with the mark, and descendants of this process; except this one, its guardian and zombies.
std::vector<MarkedProcess> marked_processes(std::string_view mark);

// Ends the processes: SIGTERM, then SIGKILL after `patience`. Returns the processes that remain `kill_within`
// later. `ended`: number of processes found.
std::vector<MarkedProcess> end_marked(std::string_view mark, TimeNs patience, TimeNs kill_within,
                                      size_t& ended);

// Ends marked processes whose run was killed. Returns their number. Runs in another namespace of processes,
// as of a container, are not judged from here.
size_t end_orphans();

// Removes files of /dev/shm with names of training libraries that this user created since `since` and that no
// process maps or holds open. Returns their number.
size_t remove_shared_memory(TimeNs since);

// A process that ends the marked processes when this one is killed; with `beat_within`, also where beat() was
// not called for so long after an earlier call: this process stands still, as on a dead mount. One thread:
// forks.
class Guardian {
 public:
  explicit Guardian(std::string mark, TimeNs beat_within = kNoTime);
  ~Guardian();  // the guardian exits without ending any process
  Guardian(const Guardian&) = delete;
  void beat() const;

 private:
  int pipe_ = -1;
  pid_t pid_ = -1;
};

}  // namespace culprit::app
