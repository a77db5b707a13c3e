// Determines the job of a source: by the configuration, its path, or the process that writes it
// (docs/formats.md section 8; control groups, SLURM_JOB_ID). process_view.h lists the permissions that each
// way needs.
//
// Blocking: one worker thread each. Never fails: an unknown job is kDefaultJob, or as configured.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/jobs/process_view.h"
#include "base/status.h"

namespace culprit::app {

// The job of sources without a job.
constexpr const char* kDefaultJob = "default";

struct JobRules {
  std::string job;          // the configured job; overrides the rest
  std::string job_pattern;  // RE2 with a group `job`, on the path
  // The processes as of `since_ns` (wall clock) or later if available in time; null: unknown. Empty:
  // processes are not consulted.
  std::function<std::shared_ptr<const ProcessView>(TimeNs since_ns)> processes = {};
  std::string otherwise = kDefaultJob;  // the job if nothing else names one
};

class JobRecognition {
 public:
  // An error if the pattern is invalid or has no group `job`.
  static Result<JobRecognition> create(JobRules rules);
  JobRecognition(JobRecognition&&) noexcept;
  JobRecognition& operator=(JobRecognition&&) noexcept;
  ~JobRecognition();

  // The job of a file; looks for the writing process if nothing else names a job.
  std::string of_file(const std::string& path) const;

 private:
  struct Impl;
  explicit JobRecognition(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::app
