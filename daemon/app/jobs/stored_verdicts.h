// Diagnoses that an earlier process stored of running jobs and did not withdraw, until the runs are restored.
//
// Owner: LiveJobs. One thread: the engine's worker.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/verdict.h"

namespace culprit::app {

class StoredVerdicts {
 public:
  void add(std::vector<Verdict> verdicts) {
    for (Verdict& v : verdicts) of_run_[{v.job, v.run}].push_back(std::move(v));
  }
  // The store lacks data of the job, so its reports may lack what came of that. Empty: of all jobs.
  void forget(const std::string& job) {
    std::erase_if(of_run_, [&](const auto& one) { return job.empty() || one.first.first == job; });
  }
  std::vector<Verdict> take(const std::string& job, uint32_t run) {
    auto node = of_run_.extract({job, run});
    return node ? std::move(node.mapped()) : std::vector<Verdict>();
  }

 private:
  std::map<std::pair<std::string, uint32_t>, std::vector<Verdict>> of_run_;
};

}  // namespace culprit::app
