#include "app/run/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace culprit::app {
namespace {

constexpr size_t kNameBytes = 100;  // leaves room for suffixes in a file name of 255 bytes
constexpr uint32_t kMembersMost = 1'000'000;

std::optional<uint32_t> count_of(std::string_view text) {
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || n > kMembersMost)
    return std::nullopt;
  return n;
}

std::optional<uint32_t> count_of(const std::optional<std::string>& text) {
  return text ? count_of(std::string_view(*text)) : std::nullopt;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
         c == '.' || c == '+';
}

// Whether the command starts the ranks itself, so that its output does not belong to one rank.
bool is_launcher(const std::vector<std::string>& command) {
  constexpr std::string_view kPrograms[] = {"torchrun", "accelerate", "deepspeed", "horovodrun",
                                            "mpirun",   "mpiexec",    "srun",      "colossalai"};
  constexpr std::string_view kModules[] = {"torch.distributed.run", "torch.distributed.launch",
                                           "accelerate.commands.launch"};
  if (command.empty()) return false;
  const std::string_view program = base_name(command[0]);
  if (std::ranges::find(kPrograms, program) != std::end(kPrograms)) return true;
  const auto module = std::ranges::find(command, "-m");
  return module != command.end() && module + 1 != command.end() &&
         std::ranges::find(kModules, *(module + 1)) != std::end(kModules);
}

// "train" of `torchrun --nnodes 2 src/train.py`, else the program.
std::string name_of_command(const std::vector<std::string>& command) {
  for (const std::string& word : command)
    if (word.ends_with(".py") && word.size() > 3) {
      const std::string_view name = base_name(word);
      return run_name_of(name.substr(0, name.size() - 3));
    }
  return command.empty() ? "job" : run_name_of(base_name(command[0]));
}

struct Ranks {
  uint32_t rank = 0, world = 1, local = 0, local_world = 1;
};

// The rank numbers that a launcher other than Slurm assigned.
std::optional<Ranks> ranks_of(const Lookup& variable) {
  struct Names {
    const char *rank, *world, *local, *local_world;
  };
  constexpr Names kNames[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
      {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
  };
  for (const Names& names : kNames) {
    const auto rank = count_of(variable(names.rank)), world = count_of(variable(names.world));
    if (!rank || !world || *rank >= *world) continue;
    const auto local = count_of(variable(names.local)), there = count_of(variable(names.local_world));
    return Ranks{*rank, *world, local.value_or(0), std::max(1u, there.value_or(1))};
  }
  return std::nullopt;
}

void join_team(Launch& out, const Ranks& ranks) {
  out.in_team = ranks.world > 1;
  out.member = ranks.rank, out.members = ranks.world;
  out.local = ranks.local, out.local_members = ranks.local_world;
}

// Reads a task of `srun`. The script of `sbatch` has no step: whatever it runs is one process.
bool read_slurm(const LaunchRequest& request, Launch& out) {
  const Lookup& variable = request.variable;
  const auto id = variable("SLURM_JOB_ID");
  if (!id || id->empty()) return false;
  out.slurm = true;
  if (const auto node = variable("SLURMD_NODENAME"); node && !node->empty()) out.host = run_name_of(*node);
  const auto step = count_of(variable("SLURM_STEP_ID"));
  const auto restarts = count_of(variable("SLURM_RESTART_COUNT")).value_or(0);
  out.job = run_name_of("slurm-" + *id) + (step ? fmt::format(".{}", *step) : "") +
            (restarts > 0 ? fmt::format("-restart{}", restarts) : "");
  const auto task = count_of(variable("SLURM_PROCID"));
  auto tasks = count_of(variable("SLURM_STEP_NUM_TASKS"));
  if (!tasks) tasks = count_of(variable("SLURM_NTASKS"));
  if (!step || !task || !tasks || *task >= *tasks) return true;
  const uint32_t node = count_of(variable("SLURM_NODEID")).value_or(0);
  const auto here = tasks_of_node(variable("SLURM_STEP_TASKS_PER_NODE").value_or(""), node);
  join_team(out, {*task, *tasks, count_of(variable("SLURM_LOCALID")).value_or(0), here.value_or(1)});
  if (*tasks > 1)
    out.log = is_launcher(request.command) ? fmt::format("task_{}", *task) : fmt::format("rank_{}", *task);
  return true;
}

// The hosts of a torchrun: one `culprit run` on each.
void read_torchrun(const LaunchRequest& request, Launch& out) {
  const auto value = [&](std::string_view option, const char* variable) {
    const auto given = option_of(request.command, option);
    return given ? given : request.variable(variable);
  };
  const std::string nodes = value("nnodes", "PET_NNODES").value_or("1");
  // A range such as "2:4" allows any number, at least the first.
  const auto count = count_of(std::string_view(nodes).substr(0, nodes.find(':')));
  const std::string id = value("rdzv-id", "PET_RDZV_ID").value_or("");
  const bool named = !request.job.empty() || (!id.empty() && id != "none");
  if (!count || *count <= 1 || !named) return;
  if (request.job.empty()) out.job = run_name_of("torchrun-" + id);
  join_team(out, {count_of(value("node-rank", "PET_NODE_RANK")).value_or(0), *count, 0, 1});
}

}  // namespace

std::string check_run_name(std::string_view name) {
  if (name.empty()) return "must not be empty";
  if (name.size() > kNameBytes) return fmt::format("must not be longer than {} bytes", kNameBytes);
  if (!std::ranges::all_of(name, is_plain)) return "must hold only letters, digits, '.', '_', '-' and '+'";
  if (name.front() == '.' || name.front() == '-') return "must not begin with '.' or '-'";
  return "";
}

std::string run_name_of(std::string_view text) {
  std::string out(text.substr(0, kNameBytes));
  for (char& c : out)
    if (!is_plain(c)) c = '_';
  if (!out.empty() && (out.front() == '.' || out.front() == '-')) out.front() = '_';
  return out.empty() ? "job" : out;
}

std::optional<std::string> option_of(const std::vector<std::string>& command, std::string_view name) {
  for (size_t i = 0; i < command.size(); ++i) {
    std::string_view word = command[i];
    if (!word.starts_with("--")) continue;
    word.remove_prefix(2);
    const size_t equals = word.find('=');
    std::string key(word.substr(0, equals));
    std::ranges::replace(key, '_', '-');
    if (key != name) continue;
    if (equals != word.npos) return std::string(word.substr(equals + 1));
    if (i + 1 < command.size()) return command[i + 1];
  }
  return std::nullopt;
}

std::optional<uint32_t> tasks_of_node(std::string_view per_node, uint32_t node) {
  uint64_t before = 0;
  for (const std::string_view part : split(per_node, ',')) {
    const size_t times = part.find("(x");
    const auto tasks = count_of(part.substr(0, times));
    const auto nodes = times == part.npos
                           ? std::optional(1u)
                           : count_of(part.substr(times + 2, part.size() - std::min(part.size(), times + 3)));
    if (!tasks || !nodes) return std::nullopt;
    before += *nodes;
    if (node < before) return tasks;
  }
  return std::nullopt;
}

Launch understand_launch(const LaunchRequest& request) {
  Launch out;
  out.host = run_name_of(request.host);
  out.log = "output";
  const auto ranks = ranks_of(request.variable);
  if (read_slurm(request, out)) {
    // Its numbers count.
  } else if (is_launcher(request.command)) {
    read_torchrun(request, out);
  } else if (ranks) {
    out.log = fmt::format("rank_{}", ranks->rank);
    const auto group = request.variable("PMIX_NAMESPACE");
    if (!request.job.empty() || (group && !group->empty())) {
      join_team(out, *ranks);
      if (request.job.empty()) out.job = run_name_of("mpi-" + *group);
    }
  }
  if (!request.job.empty()) out.job = request.job;
  if (out.job.empty()) out.job = name_of_command(request.command) + "-" + request.moment;
  return out;
}

}  // namespace culprit::app
