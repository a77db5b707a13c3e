// The logs that `confirm` and `rules replay` try a rule on: files of a job, or evidence that a daemon has
// kept. Blocks; one thread calls.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/confirm/rule.h"
#include "app/confirm/stored.h"
#include "app/offline/diagnose.h"
#include "base/status.h"

namespace culprit::app {

// The objects of an answer {"items": [ … ]}; nothing of another answer.
std::vector<nlohmann::ordered_json> items_of(const std::string& answer);

// How much of a job's kept evidence is read, and where it lies meanwhile.
struct FetchOptions {
  uint64_t bytes = 256u << 20;
  std::string folder = {};  // must exist; empty: the system's for temporary files
};

// The files of one job. A folder of fetched evidence is removed with it.
class JobLogs {
 public:
  // `paths`: as `culprit diagnose` takes them. Errors: an unreadable path, no log.
  static Result<std::shared_ptr<JobLogs>> open(const std::vector<std::string>& paths,
                                               const DiagnoseOptions& reading);
  // The job's kept bytes, up to limits of bytes and sources; without a source that is text: an error.
  static Result<std::shared_ptr<JobLogs>> fetch(StoredJobs& stored, const std::string& job,
                                                const DiagnoseOptions& reading,
                                                const FetchOptions& fetch = {});
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
  RuleMatches match(std::shared_ptr<rules::Ruleset> set) const;

 private:
  JobLogs() = default;
  Status collect(const std::vector<std::string>& paths);

  DiagnoseOptions reading_;
  JobFiles files_;
  std::string folder_;  // of fetched evidence; empty: none
};

}  // namespace culprit::app
