// What the command and the environment of `culprit run` tell of the job: its name, this host, and the other
// `culprit run` of the same job: tasks of Slurm, ranks of MPI, hosts of torchrun. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::app {

// The value of a variable of the user's environment; nothing: it is not set.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;

struct LaunchRequest {
  std::vector<std::string> command;
  std::string job;     // given by the user; empty: by the environment, else by the command
  std::string host;    // the machine's own name
  std::string moment;  // "1126-190203", the end of a name that would not differ from run to run
  Lookup variable;
};

struct Launch {
  std::string job;                        // a name for a folder
  std::string host;                       // the same
  std::string log;                        // of the output, without an ending: "output", "rank_3"
  bool in_team = false;                   // several `culprit run` share the job and its folder
  uint32_t member = 0, members = 1;       // of all of them
  uint32_t local = 0, local_members = 1;  // on this host; number 0 starts the daemon
  bool slurm = false;
};

// Why a name given by the user is no name of a job, to follow "--job "; empty: it is one.
std::string check_run_name(std::string_view name);
// Other texts as names: what does not fit becomes '_'. "job" where nothing is left.
std::string run_name_of(std::string_view text);

Launch understand_launch(const LaunchRequest& request);

// The value of an option of the command, as "--name value" or "--name=value"; '-' and '_' within are alike.
std::optional<std::string> option_of(const std::vector<std::string>& command, std::string_view name);

// Tasks on node number `node` of Slurm's "2(x3),1". Nothing: not known.
std::optional<uint32_t> tasks_of_node(std::string_view per_node, uint32_t node);

}  // namespace culprit::app
