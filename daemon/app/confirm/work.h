// From a confirmed diagnosis to its rule: reads the logs of the job and of others, makes the rule and proves
// it. Blocks; one thread uses it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/confirm/logs.h"
#include "app/confirm/rule.h"
#include "app/confirm/stored.h"

namespace culprit::app {

struct ConfirmSources {
  std::shared_ptr<rules::Ruleset> known;  // rules in use
  std::optional<detect::Pool> pool;
  std::string job;                                     // the daemon's id of the job
  std::vector<std::string> logs = {};                  // log files; empty: stored evidence, or the report's
  std::vector<std::string> healthy = {}, failed = {};  // paths of other jobs, one each
  DiagnoseOptions reading = {};
  FetchOptions fetch = {};
  size_t stored_jobs = 10;  // number of other failed and successful jobs each whose stored evidence is read
};

class ConfirmWork {
 public:
  // Borrows report and diagnosis.
  ConfirmWork(const Report& report, const Diagnosis& diagnosis, ConfirmSources sources)
      : report_(report), d_(diagnosis), from_(std::move(sources)) {}

  // Reads the data from which the rule is made and proven. `stored`: null without a daemon. notes() lists
  // unreadable data; all else is used. Fails only for files that the caller named.
  Status gather(StoredJobs* stored);
  const std::vector<std::string>& notes() const { return notes_; }
  Result<ConfirmedRule> make(const RuleWords& words) const { return rule_of(report_, d_, words, context_); }
  // The lines that a person may choose for RuleWords::line.
  std::vector<LineChoice> lines() const { return lines_of(report_, d_, context_); }
  // Sentences for the operator: what the rule leaves out, and where it was tried.
  std::vector<std::string> remarks(const ConfirmedRule& rule) const;

 private:
  Result<std::shared_ptr<JobLogs>> own_logs(StoredJobs* stored) const;
  void add(const std::string& name, bool healthy, const std::string& verdict, std::shared_ptr<JobLogs> logs);
  void gather_stored(StoredJobs& stored);
  void take_own();
  // What precedes the message in a line of the pattern, as a sentence; empty: nothing, or no line is
  // available.
  std::string header_of(const std::string& pattern) const;

  const Report& report_;
  const Diagnosis& d_;
  ConfirmSources from_;
  std::vector<std::string> notes_;
  std::shared_ptr<JobLogs> job_;
  ConfirmContext context_;
};

}  // namespace culprit::app
