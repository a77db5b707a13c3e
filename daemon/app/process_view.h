// The processes of this host as one look at /proc shows them: whose they are, which job each belongs to, and
// which files they write.
//
// What needs which right:
//   stat, cgroup, owner of /proc/PID   none, unless /proc is mounted with hidepid: then root, its group
//                                      (gid=) or CAP_SYS_PTRACE
//   environ, fd, fdinfo                the same user, or CAP_SYS_PTRACE
// So control groups (Slurm's job, Kubernetes' pod, a container, a systemd unit made for a run) and owners are
// always asked; SLURM_JOB_ID and open files only tell where they may be read, and such processes count as
// `barred` where not.
//
// Blocking, any thread; bounded in entries and in time. It follows no link that a user may have set, and
// believes no text that is not a name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/time.h"

namespace culprit::app {

struct ProcessView {
  struct Process {
    uint64_t start_ticks = 0;  // since boot: with the pid it names one process
    uint32_t parent = 0, uid = 0;
    bool barred = false;          // its environment and its files are closed to us
    std::string job;              // its own or its parents'; empty: none
    bool by_environment = false;  // SLURM_JOB_ID alone tells it
  };
  std::unordered_map<uint32_t, Process> processes;            // by pid; zombies are gone
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> writers;  // (device, inode) -> a pid that writes it
  TimeNs began_ns = kNoTime;                                  // wall clock, as the caller told
  TimeNs boot_ns = kNoTime;                                   // wall time of start_ticks 0
  bool cut = false;                                           // a bound ended it: who is absent may live
  // What the job's processes say of a file of theirs that nobody is seen to write. `began`: its first one's.
  struct Job {
    TimeNs began_ns = kNoTime;
    std::set<uint32_t> uids;
    bool barred = false;
  };
  std::map<std::string, Job> jobs() const;
};

struct ProcessLook {
  std::string proc = "/proc";
  TimeNs now = kNoTime;               // wall clock
  std::function<TimeNs()> timer;      // a monotonic clock; empty: the time is not bounded
  TimeNs most_ns = 2 * kNsPerSecond;  // a host of 20,000 processes takes half of it
};
ProcessView look_at_processes(const ProcessLook& look);

// What one process's files say of its job, without its parents': asked by those who have a pid and no view.
std::optional<std::string> job_of_process(const std::string& proc, uint32_t pid);

// Whether a process of that job writes, or may be taken to write, the file: by who has it open; where that is
// closed to us, by its owner: the one job of theirs whose name stands in the path, or the only one that ran
// when the file was written last.
struct FileFacts {
  uint64_t device = 0, inode = 0;
  uint32_t uid = 0;
  TimeNs born_ns = kNoTime, modified_ns = kNoTime;
};
std::optional<FileFacts> facts_of_file(const std::string& path);
std::optional<std::string> job_of_file(const ProcessView& view, const std::string& path,
                                       const FileFacts& file);

}  // namespace culprit::app
