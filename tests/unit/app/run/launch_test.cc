// What a command and its environment tell of the job.
#include "app/run/launch.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <map>

namespace culprit::app {
namespace {

namespace data = boost::unit_test::data;
using Variables = std::map<std::string, std::string>;

struct Case {
  const char* what;
  std::vector<std::string> command;
  Variables variables;
  std::string job, log;
  bool in_team = false;
  uint32_t member = 0, members = 1, local = 0, local_members = 1;
  std::string given = {};
};
std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.what; }

const std::vector<std::string> kTrain = {"torchrun", "--nproc-per-node", "8", "src/train.py", "--lr=1"};
const Variables kStep = {{"SLURM_JOB_ID", "71"},       {"SLURM_STEP_ID", "2"},
                         {"SLURM_PROCID", "5"},        {"SLURM_STEP_NUM_TASKS", "8"},
                         {"SLURM_NODEID", "1"},        {"SLURM_LOCALID", "1"},
                         {"SLURM_NTASKS", "99"},       {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                         {"SLURMD_NODENAME", "node-2"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

const Case kCases[] = {
    {"a script gives the name, with the time", kTrain, {}, "train-1126-190203", "output"},
    {"a program without a script", {"/opt/bin/sim"}, {}, "sim-1126-190203", "output"},
    {"a name that no folder should have", {"./.hidden dir\n"}, {}, "_hidden_dir_-1126-190203", "output"},
    {"the user's name stands", kTrain, {}, "big", "output", false, 0, 1, 0, 1, "big"},
    {"a task of srun", {"python", "a.py"}, kStep, "slurm-71.2", "rank_5", true, 5, 8, 1, 4},
    {"a launcher as a task is no rank", kTrain, kStep, "slurm-71.2", "task_5", true, 5, 8, 1, 4},
    {"a requeued job is another run",
     {"python"},
     with(kStep, "SLURM_RESTART_COUNT", "1"),
     "slurm-71.2-restart1",
     "rank_5",
     true,
     5,
     8,
     1,
     4},
    {"the script of sbatch has no step",
     {"srun", "python"},
     {{"SLURM_JOB_ID", "71"}, {"SLURM_PROCID", "0"}},
     "slurm-71",
     "output"},
    {"an array's id is a name", {"python"}, {{"SLURM_JOB_ID", "71/../.."}}, "slurm-71_.._..", "output"},
    {"hosts of a named torchrun",
     {"torchrun", "--nnodes=2", "--node_rank", "1", "--rdzv-id=r7", "t.py"},
     {},
     "torchrun-r7",
     "output",
     true,
     1,
     2,
     0,
     1},
    {"hosts by variables, with a given name",
     {"torchrun", "t.py"},
     {{"PET_NNODES", "2:4"}, {"PET_NODE_RANK", "1"}},
     "big",
     "output",
     true,
     1,
     2,
     0,
     1,
     "big"},
    {"a torchrun of several hosts without a name stands alone",
     {"torchrun", "--nnodes=2", "t.py"},
     {},
     "t-1126-190203",
     "output"},
    {"ranks of MPI with a namespace",
     {"./a.out"},
     {{"OMPI_COMM_WORLD_RANK", "3"},
      {"OMPI_COMM_WORLD_SIZE", "4"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
      {"PMIX_NAMESPACE", "host-12@1"}},
     "mpi-host-12_1",
     "rank_3",
     true,
     3,
     4,
     1,
     2},
    {"a rank beyond its world is none",
     {"./a.out"},
     {{"RANK", "4"}, {"WORLD_SIZE", "4"}},
     "a.out-1126-190203",
     "output"},
};

BOOST_DATA_TEST_CASE(the_job_is_known_from_its_command_and_environment, data::make(kCases), one) {
  LaunchRequest request{one.command, one.given, "gpu 1", "1126-190203",
                        [&](std::string_view name) -> std::optional<std::string> {
                          const auto found = one.variables.find(std::string(name));
                          return found == one.variables.end() ? std::nullopt : std::optional(found->second);
                        }};
  const Launch launch = understand_launch(request);
  BOOST_TEST(launch.job == one.job);
  BOOST_TEST(launch.log == one.log);
  BOOST_TEST(launch.in_team == one.in_team);
  BOOST_TEST(launch.member == one.member);
  BOOST_TEST(launch.members == one.members);
  BOOST_TEST(launch.local == one.local);
  BOOST_TEST(launch.local_members == one.local_members);
  BOOST_TEST(launch.host == (one.variables.contains("SLURMD_NODENAME") ? "node-2" : "gpu_1"));
}

struct Name {
  const char* name;
  bool good;
};
std::ostream& operator<<(std::ostream& out, const Name& one) { return out << one.name; }
const std::string kLong(101, 'a');
const Name kNames[] = {{"train-7b.2", true}, {"a+b_c", true},        {"", false},
                       {"..", false},        {"../x", false},        {"a/b", false},
                       {"-rf", false},       {".x", false},          {"a b", false},
                       {"\x1b[31m", false},  {kLong.c_str(), false}, {"a\n", false}};

BOOST_DATA_TEST_CASE(a_name_of_a_job_is_a_plain_name_of_a_folder, data::make(kNames), one) {
  BOOST_TEST(check_run_name(one.name).empty() == one.good);
}

struct Tasks {
  const char* text;
  uint32_t node;
  std::optional<uint32_t> tasks;
};
std::ostream& operator<<(std::ostream& out, const Tasks& one) { return out << one.text << " " << one.node; }
const Tasks kTasks[] = {{"2(x3),1", 0, 2},         {"2(x3),1", 2, 2}, {"2(x3),1", 3, 1},
                        {"2(x3),1", 4, {}},        {"4", 0, 4},       {"", 0, {}},
                        {"2(x4294967297)", 0, {}}, {"x", 0, {}},      {"2(x", 0, {}}};

BOOST_DATA_TEST_CASE(tasks_of_a_node_follow_from_slurms_list, data::make(kTasks), one) {
  BOOST_TEST((tasks_of_node(one.text, one.node) == one.tasks));
}

}  // namespace
}  // namespace culprit::app
