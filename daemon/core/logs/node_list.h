// The hosts of a job as its scheduler lists them in a line of the job's own log, as "SLURM_JOB_NODELIST=
// n[01-04,7]" in a printed environment. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace culprit::logs {

// "n[01-03],m7" is n01, n02, n03 and m7. Empty: it is no list, or one of more than 100,000 hosts.
std::vector<std::string> expand_node_list(std::string_view list);

// The hosts of the list that a line names; empty: it names none.
std::vector<std::string> nodes_listed_in(std::string_view line);

}  // namespace culprit::logs
