// The logs that `confirm` and `rules replay` try a rule on: files of a job, or evidence that a daemon has
// kept. Blocks; one thread calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/client.h"
#include "base/status.h"
#include "cli/confirm_rule.h"
#include "cli/reading.h"

namespace culprit::cli {

// The files of one job. A folder of fetched evidence is removed with it.
class JobLogs {
 public:
  // `paths`: as `culprit diagnose` takes them. Errors: an unreadable path, no log.
  static Result<std::shared_ptr<JobLogs>> open(const std::vector<std::string>& paths,
                                               const ReadingOptions& reading);
  // The job's kept bytes, up to limits of bytes and sources; without a source that is text: an error.
  static Result<std::shared_ptr<JobLogs>> fetch(app::Client& client, const std::string& job,
                                                const ReadingOptions& reading);
  ~JobLogs();
  JobLogs(const JobLogs&) = delete;
  JobLogs& operator=(const JobLogs&) = delete;

  std::vector<Occurrences> search(const std::vector<std::string>& patterns) const;
  // What the job wrote, of any host.
  struct Facts {
    std::vector<std::string> templates;  // mined, with holes "<*>"
    std::vector<std::string> hosts;
  };
  Facts facts() const;
  app::RuleMatches match(std::shared_ptr<rules::Ruleset> set) const;

 private:
  JobLogs() = default;
  Status collect(const std::vector<std::string>& paths);

  ReadingOptions reading_;
  app::JobFiles files_;
  std::string folder_;  // of fetched evidence; empty: none
};

}  // namespace culprit::cli
