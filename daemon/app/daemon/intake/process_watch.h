// Finds which jobs have processes on this host, and the job of a process or file. A thread of its own scans
// /proc, so the loop and the engine never wait for it, even if /proc hangs.
//
// One scan serves all jobs. The next scan starts a second later at the earliest; scans take at most a
// twentieth of the time. If a scan hangs for a minute, all answers become unknown and a process has no job.
//
// Any thread: alive(), looked_ns(), follow_*(), join(), jobs_of() and view(). Loop only: the rest. Owns two
// threads: one scans, the other answers queries about one process, which must not wait for a scan.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/jobs/job_names.h"
#include "app/jobs/process_view.h"
#include "base/status.h"
#include "io/env.h"

namespace culprit::app {

// Whether a job has processes on this host. A process counts if it belongs to the job, has a file of the job
// open for writing, or sent data of the job. Pure; one thread at a time. Call seen() after each scan.
class JobAliveness {
 public:
  // Registers a file or process from which data of the job came. Their number is bounded.
  void follow_file(const std::string& job, uint64_t device, uint64_t inode);
  void follow_process(const std::string& job, uint32_t pid);
  // Processes in the control group of the pod, "pod-UID", belong to the job too.
  void follow_pod(const std::string& pod, const std::string& job);
  // Processes of this member's user and job belong to the chain's job too.
  void join(const JobNames::Member& member);
  void on_view(const ProcessView& view);
  // Nothing if no process of the job was ever seen or the scan was incomplete: an absent process proves
  // nothing then.
  std::optional<bool> alive(const std::string& job) const;
  // Whether a process is in a control group of the job, so that the job's name is not only its user's choice.
  bool shows(const std::string& job) const { return shown_.contains(job); }
  std::set<uint32_t> users_of(const std::string& job) const;  // users of the job's processes
  // The job of a process of the last scan: named by the process, by its data, or by a file that it writes.
  std::string job_of(uint32_t pid, const ProcessView& view) const;
  // The job's processes in this scan, and their descendants. If the job's control group, rings or files show
  // processes, other processes that merely claim the job count only with a matching user.
  struct JobProcess {
    uint32_t pid = 0, uid = 0;
    uint64_t start_ticks = 0;
  };
  std::vector<JobProcess> processes_of(const std::string& job, const ProcessView& view) const;

 private:
  struct Followed {
    std::string job;
    uint64_t start_ticks = 0;  // when first seen: a later process with the same pid is not the job's
  };
  const std::string& chain_of(const std::string& job, uint32_t uid) const;

  std::map<std::string, std::string> pods_;                         // pod -> job
  std::map<std::pair<std::string, uint32_t>, std::string> chains_;  // (member, uid) -> job
  std::map<std::pair<uint64_t, uint64_t>, std::string> files_;      // (device, inode) -> job
  std::map<uint32_t, Followed> processes_;
  std::set<std::string> now_, ever_;
  std::map<std::string, std::set<uint32_t>> shown_;  // users by job
  std::map<uint32_t, std::string> writers_;          // pid of a followed file's writer -> job
  bool cut_ = false;
};

class ProcessWatch {
 public:
  // `names_jobs`: see ProcessLook.
  static Result<std::unique_ptr<ProcessWatch>> start(io::Env& env, bool names_jobs = true,
                                                     std::string proc = "/proc");
  // Does not wait for a hung scan.
  ~ProcessWatch();

  // As of the last scan; requests another one.
  std::optional<bool> alive(const std::string& job);
  // See JobAliveness; as of the last scan.
  bool shows(const std::string& job);
  std::set<uint32_t> users_of(const std::string& job);
  // The job and the user of each of these processes in a scan since `since_ns` (wall clock); waits for the
  // scan as view() does.
  struct Belongs {
    std::string job;  // empty: none
    uint32_t uid = 0;
  };
  std::map<uint32_t, Belongs> jobs_of(const std::set<uint32_t>& pids, TimeNs since_ns, TimeNs patience_ns);
  // Start of the scan behind alive() (wall clock); kNoTime: no scan yet.
  TimeNs looked_ns();
  void follow_file(const std::string& job, uint64_t device, uint64_t inode);
  void follow_process(const std::string& job, uint32_t pid);
  // See JobAliveness::follow_pod(); may outlive this object.
  std::function<void(const std::string& pod, const std::string& job)> pod_follower() const;
  void join(const JobNames::Member& member);
  // A scan that started at `since_ns` (wall clock) or later. Waits at most `patience_ns`, then returns the
  // last scan; null before the first scan. Not for the loop's thread, which starts the scans.
  std::shared_ptr<const ProcessView> view(TimeNs since_ns, TimeNs patience_ns);
  void request_look();
  // See JobAliveness::processes_of, by view(); empty before the first scan.
  std::vector<JobAliveness::JobProcess> processes_of(const std::string& job, TimeNs since_ns,
                                                     TimeNs patience_ns);

  // The job of a process; "" if it has none or the answer takes too long.
  void job_of(uint32_t pid, std::function<void(std::string)> answer);
  const std::string& proc() const { return proc_; }
  // Start of a hung scan; nothing if no scan hangs.
  std::optional<TimeNs> stuck_ns(TimeNs mono) const;

  struct Counters {
    size_t processes = 0, barred = 0;
    uint64_t looks = 0;
    TimeNs last_took_ns = 0;
  };
  Counters counters() const { return counters_; }

 private:
  struct Shared;
  struct Question;
  ProcessWatch(io::Env& env, bool names_jobs, std::string proc);
  void wanted();
  void begin();
  void ended(TimeNs began_ns);
  void answer_late();

  io::Env& env_;
  const bool names_jobs_;
  const std::string proc_;
  const std::shared_ptr<Shared> shared_;  // outlives this object if a scan hangs
  bool busy_ = false, again_ = false;
  TimeNs began_ns_ = kNoTime, next_ns_ = 0;  // monotonic
  Counters counters_;
  std::map<uint64_t, Question> questions_;
  uint64_t next_question_ = 0;
  std::unique_ptr<io::Timer> look_timer_, late_timer_;
  std::unique_ptr<io::Worker> looks_, asks_;
};

}  // namespace culprit::app
