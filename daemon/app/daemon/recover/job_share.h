// Which of the scheduler's jobs this controller has, where several collectors share them: inputs of other
// members' jobs are left out. A job that this member gained is given as it is now; one that it lost ends
// here, as if it had been cancelled. Pure; one thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/daemon/recover/scheduled_jobs.h"
#include "core/recover/controller.h"

namespace culprit::app {

class JobShare {
 public:
  // The epoch in which a job of the scheduler is this member's; nothing: it is not.
  using EpochOf = std::function<std::optional<uint64_t>(const std::string& job)>;

  struct Sources {
    EpochOf epoch_of;
    // What another member knew of a job that is gained now; nothing: it begins here.
    std::function<std::optional<recover::JobAdopted>(const std::string& job)> adopted = {};
    // Whether the controller knows the end of this attempt.
    std::function<bool(const ScheduledJob&)> has_ended = {};
  };
  struct Selected {
    std::vector<recover::Input> inputs;
    std::vector<recover::Input> ends;  // of gained jobs; they follow the verdicts that explain them
    std::vector<std::string> gained;   // ids, ascending
  };
  Selected select(std::vector<recover::Input> inputs, const ScheduledJobs& jobs, const Sources& from);

 private:
  std::map<std::string, uint64_t> own_;  // epoch by the job's id
};

}  // namespace culprit::app
