// The logs on which `confirm` and `rules replay` try a rule: files of a job, or evidence stored by a daemon.
// Blocks; one thread calls.
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

// The objects of an answer {"items": [ … ]}; empty for another answer.
std::vector<nlohmann::ordered_json> items_of(const std::string& answer);

// Limits of reading a job's stored evidence, and its temporary folder.
struct FetchOptions {
  uint64_t bytes = 256u << 20;
  std::string folder = {};  // must exist; empty: the system's temporary folder
};

// The files of one job. Its destructor removes a folder of fetched evidence.
class JobLogs {
 public:
  // `paths`: as `culprit diagnose` takes them. Errors: an unreadable path, no log.
  static Result<std::shared_ptr<JobLogs>> open(const std::vector<std::string>& paths,
                                               const DiagnoseOptions& reading);
  // Fetches the job's stored bytes, up to limits of bytes and sources. Fails without a text source.
  static Result<std::shared_ptr<JobLogs>> fetch(StoredJobs& stored, const std::string& job,
                                                const DiagnoseOptions& reading,
                                                const FetchOptions& fetch = {});
  ~JobLogs();
  JobLogs(const JobLogs&) = delete;
  JobLogs& operator=(const JobLogs&) = delete;

  std::vector<Occurrences> search(const std::vector<std::string>& patterns) const;
  // Facts about the job's lines, over all hosts.
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
  std::string folder_;  // folder of fetched evidence; empty: none
};

}  // namespace culprit::app
