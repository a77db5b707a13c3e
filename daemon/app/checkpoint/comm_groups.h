// The hosts of a job and which of them work together, as its communication traces say. Blocking; one thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "core/checkpoint/copy_plan.h"

namespace culprit::app {

struct CommGroups {
  std::vector<std::string> hosts;             // by their lowest rank
  std::vector<checkpoint::HostGroup> groups;  // those of several hosts, without the world
  std::vector<std::string> problems;          // sentences: files that were read in part or not at all
};

// Reads the beginning of each trace (formats.md section 3) below the folder. An error: there is none, or too
// many hosts.
Result<CommGroups> read_comm_groups(const std::string& folder);

}  // namespace culprit::app
