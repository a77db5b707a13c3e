// Which job a source belongs to, and whether a job still has processes: by the configuration, by the path, by
// the process that writes it (FORMATS.md section 8; /proc, SLURM_JOB_ID, cgroups).
//
// Blocking: reads below `proc`, bounded by limits::kProcEntries a call. Any one thread; each worker that asks
// has its own. Never fails: what cannot be told is the fallback.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::app {

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
  ~JobRecognition();

  // Of a file; looks for who has it open for writing where nothing else tells. kDefaultJob where nobody does.
  std::string of_file(const std::string& path);
  // Of what a process sends or writes; `told` is what it says itself (a ring's header) and counts where the
  // process is gone or belongs to no job.
  std::string of_process(uint32_t pid, std::string_view told = {});

 private:
  struct Impl;
  explicit JobRecognition(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The job that a process belongs to by its environment (SLURM_JOB_ID), its control group (Slurm's, a pod of
// Kubernetes, a unit of systemd that is made for a run), or those of its parents. Nothing where none tells.
std::optional<std::string> job_of_process(const std::string& proc, uint32_t pid);

// Whether processes of the job are there. Nothing where no process was ever known to be of it or /proc does
// not show others' processes.
std::optional<bool> job_alive(const std::string& proc, const std::string& job);

}  // namespace culprit::app
