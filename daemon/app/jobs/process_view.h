// The processes of this host from one scan of /proc: owner, job, and the files that they write.
//
// Permissions:
//   stat, cgroup, owner of /proc/PID   none, unless /proc is mounted with hidepid: then root, its group
//                                      (gid=) or CAP_SYS_PTRACE
//   environ, fd, fdinfo                the same user, or CAP_SYS_PTRACE
// Control groups (Slurm's job, Kubernetes' pod, a container, a systemd unit made for a run) and owners are
// always read. SLURM_JOB_ID and open files are read where permitted; other processes count as `barred`.
//
// Blocking, any thread; bounded in entries and in time. It follows no link that a user may have set, and
// rejects texts that are no valid names.
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
    uint64_t start_ticks = 0;  // since boot; identifies a process together with the pid
    uint32_t parent = 0, uid = 0;
    bool barred = false;          // the environment and the files of the process are not readable
    std::string job;              // job of the process or an ancestor; empty: none
    bool by_environment = false;  // known only from SLURM_JOB_ID
    bool by_user = false;         // known only from a group below the user's own manager
  };
  std::unordered_map<uint32_t, Process> processes;            // by pid, without zombies
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> writers;  // (device, inode) -> pid of a writer
  TimeNs began_ns = kNoTime;                                  // wall clock, given by the caller
  TimeNs boot_ns = kNoTime;                                   // wall time of start_ticks 0
  bool cut = false;  // a limit ended the scan: a process that is absent from it may be alive
  // Facts of the job's processes that decide whether the job writes a file without a visible writer. `began`:
  // start of the first process.
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
  std::function<TimeNs()> timer;      // a monotonic clock; empty: no time limit
  TimeNs most_ns = 2 * kNsPerSecond;  // a scan of 20,000 processes takes half of it
  bool names_jobs = true;             // false: control groups and environments determine no job
};
ProcessView look_at_processes(const ProcessLook& look);

// The job of one process from its own files, without its ancestors; for callers with a pid and no view.
std::optional<std::string> job_of_process(const std::string& proc, uint32_t pid);

// The job's rank count in the process's own environment: torchrun, MPI, Slurm. 0: unknown, or not readable.
// The user controls this value.
uint32_t world_of_process(const std::string& proc, uint32_t pid);

// A number that identifies the process's network namespace; "self": the namespace of this program. Needs no
// permission for the process, unlike /proc/PID/ns/net. Nothing: unknown.
std::optional<uint64_t> network_namespace(const std::string& proc, const std::string& pid);

// Whether a process of the job writes the file or is assumed to. If open files are not readable, the file's
// owner decides: by the owner's one job whose name is in the path, or the owner's only job at the last write.
struct FileFacts {
  uint64_t device = 0, inode = 0;
  uint32_t uid = 0;
  TimeNs born_ns = kNoTime, modified_ns = kNoTime;
};
std::optional<FileFacts> facts_of_file(const std::string& path);
std::optional<std::string> job_of_file(const ProcessView& view, const std::string& path,
                                       const FileFacts& file);

}  // namespace culprit::app
