// What the command and the environment of `culprit run` say about the job: its name, this host, and other
// `culprit run` processes of the same job (Slurm tasks, MPI ranks, torchrun hosts). Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::app {

// The value of a variable in the user's environment; nothing: not set.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;

struct LaunchRequest {
  std::vector<std::string> command;
  std::string job;     // given by the user; empty: derived from the environment, else from the command
  std::string host;    // the machine's own name
  std::string moment;  // "1126-190203", a suffix that makes the name differ between runs
  Lookup variable;
};

struct Launch {
  std::string job;                        // a name for a folder
  std::string host;                       // the same
  std::string log;                        // name of the output's log, without a suffix: "output", "rank_3"
  bool in_team = false;                   // several `culprit run` processes share the job and its folder
  uint32_t member = 0, members = 1;       // number and count over all hosts
  uint32_t local = 0, local_members = 1;  // number on this host; member 0 starts the daemon
  bool slurm = false;
  bool shows_life = false;  // its members show life all the time (agreement.h)
  bool continues = false;   // `job` names an earlier run, and goes on in its folder
};

// Why a name given by the user is no valid job name, to follow "--job "; empty: valid.
std::string check_run_name(std::string_view name);
// Makes a valid name of any text: replaces invalid characters by '_'. "job" if nothing is left.
std::string run_name_of(std::string_view text);

Launch understand_launch(const LaunchRequest& request);

// The value of an option in the command, as "--name value" or "--name=value"; '-' and '_' in names are
// equivalent.
std::optional<std::string> option_of(const std::vector<std::string>& command, std::string_view name);

// Tasks on node number `node` according to Slurm's "2(x3),1". Nothing: unknown.
std::optional<uint32_t> tasks_of_node(std::string_view per_node, uint32_t node);

}  // namespace culprit::app
