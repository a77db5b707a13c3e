// The current verdict of a run, after people judged its diagnoses. Pure except for the records.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/jobs/job_attempts.h"
#include "model/verdict.h"
#include "records/records.h"

namespace culprit::app {

struct RunVerdict {
  std::string job;
  uint32_t run = 0;
  bool known = true;    // the records have diagnoses of the run
  bool settled = true;  // false: a change of the verdict waits for its announcement
  std::optional<Verdict> verdict;
  std::set<std::string> refuted;             // ids of diagnoses
  std::string owner;                         // owner of the job: "user 1000", "host gpu-7"; empty: unknown
  std::optional<JobAttempts> attempts = {};  // of a job that runs again
  bool running = false;                      // only known with `attempts`
  bool next_is_late = false;                 // another attempt was announced, and did not begin in time
  std::string user;                          // the job's only writer: "user 1000"; empty: unknown, or several
};

// `of_run`: all diagnoses of a run, newest first.
RunVerdict run_verdict(const std::vector<Verdict>& of_run);
// It could not be read, and is neither known nor settled.
RunVerdict unread_verdict(const std::string& job, uint32_t run);
RunVerdict run_verdict(records::Records& records, const std::string& job, uint32_t run);

}  // namespace culprit::app
