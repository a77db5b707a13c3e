// Reads all jobs and nodes of Slurm in two commands, and host lists once each. Judged by Slurm 22.05.
// Blocking; one thread at a time.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "respond/scheduler_view.h"
#include "respond/slurm/commands.h"

namespace culprit::respond::slurm {

class SlurmLook {
 public:
  // `options` is copied; `pace` is borrowed.
  SlurmLook(SlurmOptions options, const Pace& pace) : options_(std::move(options)), pace_(pace) {}
  // An error if Slurm does not answer, or answers what cannot be read: then nothing is known.
  Result<SchedulerView> look();

 private:
  Result<const std::vector<std::string>*> expand(const Commands& commands, const std::string& list);

  const SlurmOptions options_;
  const Pace& pace_;
  // Host list -> hosts, of this view and of the last; bounded by the jobs.
  std::map<std::string, std::vector<std::string>> lists_, last_lists_;
};

// One line of each command; for tests.
SlurmResult<SeenJob> parse_job_line(std::string_view line, std::string& host_list);
SlurmResult<SeenHost> parse_node_line(std::string_view line);

}  // namespace culprit::respond::slurm
