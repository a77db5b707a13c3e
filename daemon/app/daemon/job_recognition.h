// Which job a source belongs to: by the configuration, by its path, by the process that writes it (FORMATS.md
// section 8; control groups, SLURM_JOB_ID). process_view.h says which right each way needs.
//
// Blocking: one worker thread each. Never fails: what cannot be told is kDefaultJob, or as configured.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/process_view.h"
#include "base/status.h"

namespace culprit::app {

// The job of what belongs to none.
constexpr const char* kDefaultJob = "default";

struct JobRules {
  std::string job;          // as configured; wins
  std::string job_pattern;  // RE2 with a group `job`, on the path
  // The processes as of `since_ns` (wall clock) or later, as far as they can be had; null: unknown. Empty:
  // nobody is asked.
  std::function<std::shared_ptr<const ProcessView>(TimeNs since_ns)> processes = {};
  std::string otherwise = kDefaultJob;  // where none of these tells
};

class JobRecognition {
 public:
  // An error where the pattern is none or has no group `job`.
  static Result<JobRecognition> create(JobRules rules);
  JobRecognition(JobRecognition&&) noexcept;
  JobRecognition& operator=(JobRecognition&&) noexcept;
  ~JobRecognition();

  // Of a file; looks for who writes it where nothing else tells.
  std::string of_file(const std::string& path) const;

 private:
  struct Impl;
  explicit JobRecognition(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::app
