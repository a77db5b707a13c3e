// The hosts of a job, from the scheduler's list in a line of the job's own log, such as
// "SLURM_JOB_NODELIST=n[01-04,7]" in a printed environment. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace culprit::logs {

// Expands "n[01-03],m7" to n01, n02, n03 and m7. Empty: not a list, or more than 100,000 hosts.
std::vector<std::string> expand_node_list(std::string_view list);

// The hosts of the node list in a line; empty: the line has none.
std::vector<std::string> nodes_listed_in(std::string_view line);

}  // namespace culprit::logs
