// Which job a source belongs to, and whether a job still has processes: by the configuration, by the path, by
// the process that writes it (FORMATS.md section 8; SLURM_JOB_ID, control groups).
//
// Blocking: reads below `proc`, at most limits::kProcEntries entries a call. Any thread, one at a time; each
// worker that asks has its own. Never fails: what cannot be told is kDefaultJob. Follows no link that a user
// may have set.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit::app {

// The job of what belongs to none.
constexpr const char* kDefaultJob = "default";

struct JobRules {
  std::string job;          // as configured; wins
  std::string job_pattern;  // RE2 with a group `job`, on the path
  std::string proc = "/proc";
};

class JobRecognition {
 public:
  // An error where the pattern is none or has no group `job`.
  static Result<JobRecognition> create(JobRules rules);
  JobRecognition(JobRecognition&&) noexcept;
  JobRecognition& operator=(JobRecognition&&) noexcept;
  ~JobRecognition();

  // Of a file; looks for who has it open for writing where nothing else tells.
  std::string of_file(const std::string& path) const;
  // Of what a process sends or writes. `told` is what it says itself (a ring's header): it counts where
  // nothing is configured and the process belongs to no job, or is gone.
  std::string of_process(uint32_t pid, std::string_view told = {}) const;

 private:
  struct Impl;
  explicit JobRecognition(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The job that a process belongs to: by its environment (SLURM_JOB_ID; readable to root and its own user),
// its control group (Slurm's job, Kubernetes' pod, a systemd unit made for a run), else those of its parents.
std::optional<std::string> job_of_process(const std::string& proc, uint32_t pid);

// A process that has the file open for writing.
std::optional<uint32_t> writer_of(const std::string& proc, const std::string& path);

// Whether a job's processes are there: one that belongs to it (job_of_process), that has one of its files
// open for writing, or that sent something of it. One pass over all processes answers for all jobs for
// a second.
class JobAliveness {
 public:
  explicit JobAliveness(std::string proc = "/proc") : proc_(std::move(proc)) {}
  // What was taken of the job: from such a file, from such a process. A bounded number; the last ones.
  void follow_file(const std::string& job, uint64_t device, uint64_t inode);
  void follow_process(const std::string& job, uint32_t pid);
  // Nothing where no process of the job was ever seen, so that its absence says nothing: ask while it runs.
  std::optional<bool> alive(const std::string& job, int64_t now_ns);

 private:
  void look();

  std::string proc_;
  std::optional<int64_t> looked_ns_;
  std::map<std::pair<uint64_t, uint64_t>, std::string> files_;  // (device, inode) -> job
  std::map<uint32_t, std::string> processes_;
  std::set<std::string> now_, ever_;
};

}  // namespace culprit::app
