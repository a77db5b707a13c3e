// The processes of one `culprit run --retries`, each with a mark in its environment. A killed torchrun leaves
// its ranks running; the next attempt may begin when none is left. Sees only this user's processes. Blocking;
// any thread.
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

// A unique mark: this process, its start and random digits.
std::string make_mark();

// The processes with the mark, except this one and zombies.
std::vector<MarkedProcess> marked_processes(std::string_view mark);

// Ends the processes: SIGTERM, then SIGKILL after `patience`. Returns the processes that remain `kill_within`
// later. `ended`: number of processes found.
std::vector<MarkedProcess> end_marked(std::string_view mark, TimeNs patience, TimeNs kill_within,
                                      size_t& ended);

// Ends marked processes whose run was killed. Returns their number.
size_t end_orphans();

// Removes files of /dev/shm with names of training libraries that this user created since `since` and that no
// process maps or holds open. Returns their number.
size_t remove_shared_memory(TimeNs since);

// A process that ends the marked processes when this one is killed. One thread: forks.
class Guardian {
 public:
  explicit Guardian(std::string mark);
  ~Guardian();  // the guardian exits without ending any process
  Guardian(const Guardian&) = delete;

 private:
  int pipe_ = -1;
  pid_t pid_ = -1;
};

}  // namespace culprit::app
