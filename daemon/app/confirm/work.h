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
  std::string job;                                     // as the daemon names it
  std::vector<std::string> logs = {};                  // its files; empty: what is kept, or the report's
  std::vector<std::string> healthy = {}, failed = {};  // paths of other jobs, one each
  DiagnoseOptions reading = {};
  FetchOptions fetch = {};
  size_t stored_jobs = 10;  // other jobs of each kind, failed and successful, whose kept evidence it reads
};

class ConfirmWork {
 public:
  // Borrows report and diagnosis.
  ConfirmWork(const Report& report, const Diagnosis& diagnosis, ConfirmSources sources)
      : report_(report), d_(diagnosis), from_(std::move(sources)) {}

  // Reads what the rule is made and proven with. `stored`: null without a daemon. What cannot be read is in
  // notes(), and the rest counts. Errors: files that the caller named.
  Status gather(StoredJobs* stored);
  const std::vector<std::string>& notes() const { return notes_; }
  Result<ConfirmedRule> make(const RuleWords& words) const { return rule_of(report_, d_, words, context_); }
  // The lines that a person may choose from, for RuleWords::line.
  std::vector<LineChoice> lines() const { return lines_of(report_, d_, context_); }
  // Sentences for the operator: what the rule leaves out, and where it was tried.
  std::vector<std::string> remarks(const ConfirmedRule& rule) const;

 private:
  Result<std::shared_ptr<JobLogs>> own_logs(StoredJobs* stored) const;
  void add(const std::string& name, bool healthy, const std::string& verdict, std::shared_ptr<JobLogs> logs);
  void gather_stored(StoredJobs& stored);
  void take_own();
  // What a line of the pattern has before its message, as a sentence; empty: nothing, or no line is here.
  std::string header_of(const std::string& pattern) const;

  const Report& report_;
  const Diagnosis& d_;
  ConfirmSources from_;
  std::vector<std::string> notes_;
  std::shared_ptr<JobLogs> job_;
  ConfirmContext context_;
};

}  // namespace culprit::app
