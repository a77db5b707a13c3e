// The processes of one `culprit run --retries`: each has its mark in the environment. A torchrun that is
// killed leaves its ranks behind; the next attempt may begin when none is left. Sees this user's processes
// alone. Blocking; any thread.
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
  std::string name;  // of its program, as the kernel shortens it
  char state = '?';  // of /proc/PID/stat; 'D': it waits in the kernel and cannot be killed
};

// A mark that no other run has: this process, its start and random digits.
std::string make_mark();

// The processes with the mark, without this one and without zombies.
std::vector<MarkedProcess> marked_processes(std::string_view mark);

// Ends them: SIGTERM, after `patience` SIGKILL. Returns those that are left `kill_within` after that.
// `ended`: how many there were.
std::vector<MarkedProcess> end_marked(std::string_view mark, TimeNs patience, TimeNs kill_within,
                                      size_t& ended);

// Ends the processes of marks whose run is gone: it was killed. Returns how many there were.
size_t end_orphans();

// Files of /dev/shm with names of training libraries that this user made since `since` and no process maps or
// holds open. Removes them; returns how many.
size_t remove_shared_memory(TimeNs since);

// A process that ends the marked ones when this one is killed. One thread: forks.
class Guardian {
 public:
  explicit Guardian(std::string mark);
  ~Guardian();  // it goes without ending anything
  Guardian(const Guardian&) = delete;

 private:
  int pipe_ = -1;
  pid_t pid_ = -1;
};

}  // namespace culprit::app
