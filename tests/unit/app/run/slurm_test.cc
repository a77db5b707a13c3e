#include "app/run/slurm.h"

#include <fmt/ranges.h>

#include <fmt/format.h>
#include <boost/test/data/test_case.hpp>

#include <boost/test/unit_test.hpp>
#include <map>

#include "app/run/chain.h"
#include "app/run/tool.h"

namespace culprit::app {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream words(text);
  for (std::string word; words >> word;) out.push_back(word);
  return out;
}

std::string words_of(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

Lookup lookup(std::map<std::string, std::string, std::less<>> variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  };
}

// As `scontrol -o show job` of Slurm 22.05 prints it, with SLURM_TIME_FORMAT=%s.
std::string shown(const std::string& reason, const std::string& preempt_time) {
  return "JobId=12 JobName=llama Reason=7 UserId=user(1000) Account=(null) QOS=(null) JobState=COMPLETING "
         "Reason=" +
         reason +
         " Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 RunTime=00:01:07 "
         "TimeLimit=00:05:00 StartTime=1000 EndTime=1300 PreemptTime=" +
         preempt_time +
         " Partition=train ReqNodeList=(null) ExcNodeList=n[7-8] NumNodes=2 Features=(null) OverSubscribe=OK "
         "Command=/home/u/my job.sh one two WorkDir=/home/u/my runs Comment=a b=c  "
         "StdErr=/home/u/out-12.txt StdOut=/home/u/out-12.txt TresPerNode=gres:gpu:8 Power= ";
}

struct Step {
  std::string command;
  int nodes;  // 0: not stated
  std::string without;
};
std::ostream& operator<<(std::ostream& out, const Step& step) { return out << step.command; }

const Step kSteps[] = {
    {"srun -N2 train", 2, "srun --exclude=n1,n3 -N2 train"},
    {"/usr/bin/srun --nodes=2-4 train", 2, "/usr/bin/srun --exclude=n1,n3 --nodes=2-4 train"},
    {"srun -N 16 train", 16, "srun --exclude=n1,n3 -N 16 train"},
    {"srun train", 0, "srun --exclude=n1,n3 train"},
    {"srun -N2 -x n5 train", 2, "srun -N2 -x n5 train"},  // its own choice of nodes is left as it is
    {"srun -N2 --nodelist n1 train", 2, "srun -N2 --nodelist n1 train"},
    {"torchrun -N2 train", 0, "torchrun -N2 train"},
    {"srun -N", 0, "srun --exclude=n1,n3 -N"},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(slurm)

BOOST_DATA_TEST_CASE(a_step_runs_on_as_many_nodes_without_the_excluded_ones,
                     boost::unit_test::data::make(kSteps)) {
  const auto words = words_of(sample.command);
  BOOST_TEST(nodes_of_step(words).value_or(0) == static_cast<uint32_t>(sample.nodes));
  BOOST_TEST(words_of(excluding(words, {"n1", "n3"})) == sample.without);
  BOOST_TEST(words_of(excluding(words, {})) == sample.command);
}

BOOST_AUTO_TEST_CASE(a_partition_or_a_qos_decides_what_a_preemption_does_before_the_cluster) {
  struct {
    const char *type, *cluster, *partition, *qos;
    bool again;
  } const kModes[] = {
      {"preempt/partition_prio", "REQUEUE", "", "", true},
      {"preempt/partition_prio", "CANCEL", "", "", false},
      {"preempt/partition_prio", "CANCEL", "REQUEUE", "", true},
      {"preempt/partition_prio", "REQUEUE", "CANCEL", "REQUEUE", false},
      {"preempt/partition_prio", "REQUEUE,GANG", "OFF", "", true},
      {"preempt/qos", "CANCEL", "CANCEL", "requeue\n", true},
      {"preempt/qos", "REQUEUE", "REQUEUE", "cancel\n", false},
      {"preempt/qos", "REQUEUE", "CANCEL", "cluster\n", true},
      {"preempt/qos", "REQUEUE", "CANCEL", "", true},  // sacctmgr does not answer
      {"preempt/none", "OFF", "", "", false},
  };
  for (const auto& mode : kModes) {
    const std::string config = fmt::format(
        "PreemptExemptTime       = 00:00:00\nPreemptMode             = {}\nPreemptType             = {}\n",
        mode.cluster, mode.type);
    const std::string partition =
        *mode.partition ? fmt::format("PartitionName=train PreemptMode={} State=UP", mode.partition) : "";
    BOOST_TEST(requeues(config, partition, mode.qos) == mode.again, config + partition + " " + mode.qos);
  }
}

BOOST_AUTO_TEST_CASE(a_job_is_ended_by_its_limit_or_a_preemption_and_else_by_a_person) {
  const auto limit = slurm_job_of(shown("TimeLimit", "None")), person = slurm_job_of(shown("None", "None")),
             other = slurm_job_of(shown("None", "1200")), earlier = slurm_job_of(shown("None", "900"));
  BOOST_REQUIRE((limit && person && other && earlier));
  BOOST_TEST((limit->time_limit && !limit->preempted));
  BOOST_TEST((!person->time_limit && !person->preempted));
  BOOST_TEST((other->preempted && !other->time_limit));
  BOOST_TEST(!earlier->preempted);  // of an earlier start of the job
  BOOST_TEST(limit->end_ns == 1300 * kNsPerSecond);
  BOOST_TEST((limit->batch && limit->requeue && !limit->exclusive));
  BOOST_TEST(limit->command == "/home/u/my job.sh one two");
  BOOST_TEST(limit->folder == "/home/u/my runs");
  BOOST_TEST(!slurm_job_of("slurm_load_jobs error: Invalid job id specified"));
  BOOST_TEST(!slurm_job_of(""));
}

BOOST_AUTO_TEST_CASE(a_successor_gets_what_the_job_got) {
  const auto job = slurm_job_of(shown("None", "None"));
  const auto options = successor_options(*job, lookup({{"SLURM_JOB_ID", "12"},
                                                       {"SLURM_JOB_NAME", "llama 70b"},
                                                       {"SLURM_JOB_NUM_NODES", "2"},
                                                       {"SLURM_JOB_ACCOUNT", "(null)"},
                                                       {"SLURM_GPUS_PER_NODE", "a100:8"}}));
  BOOST_TEST(fmt::format("{}", fmt::join(options, "|")) ==
             "--job-name=llama 70b|--nodes=2|--gpus-per-node=a100:8|--partition=train|--time=00:05:00|"
             "--chdir=/home/u/my runs|--gres=gpu:8|--output=/home/u/out-%j.txt");
  // One task of an array, not the whole array; its output files have names of their own.
  const auto of_array =
      successor_options(*job, lookup({{"SLURM_JOB_ID", "12"}, {"SLURM_ARRAY_TASK_ID", "7"}}));
  BOOST_TEST(words_of(of_array).find("--array=7") != std::string::npos);
  BOOST_TEST(words_of(of_array).find("--output") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(arguments_of_the_script_are_those_behind_it) {
  constexpr char kLine[] = "/bin/bash\0/var/spool/slurmd/job00012/slurm_script\0one\0two words\0";
  BOOST_TEST(
      (script_arguments({kLine, sizeof kLine}).value() == std::vector<std::string>{"one", "two words", ""}));
  BOOST_TEST(!script_arguments(std::string("python3\0train.py\0", 17)));
  BOOST_TEST(!script_arguments(""));
}

BOOST_AUTO_TEST_CASE(a_host_of_a_log_is_a_node_of_the_job_or_none) {
  const std::vector<std::string> nodes = {"n1", "n10", "gpu-7.cluster"};
  BOOST_TEST(node_named("n1", nodes) == "n1");
  BOOST_TEST(node_named("n10.cluster.example", nodes) == "n10");
  BOOST_TEST(node_named("gpu-7", nodes) == "gpu-7.cluster");
  BOOST_TEST(node_named("n2", nodes).empty());
  BOOST_TEST(node_named("", nodes).empty());
}

BOOST_AUTO_TEST_CASE(attempts_go_on_in_the_successor_that_the_last_one_names) {
  Attempt first, second;
  first.status = 1, first.leaves_out = {"n1"}, first.job = "12", first.successor = "13";
  first.failure.root = "r", first.failure.advice.kind = Restart::kElsewhere, first.to = 17;
  first.failure.progress = recover::Progress::kMade;
  second.number = 2, second.status = 1, second.job = "13";
  const auto one = attempts_of(ledger_line(first));
  BOOST_REQUIRE(one.size() == 1u);
  BOOST_TEST(ledger_line(one[0]) == ledger_line(first));
  BOOST_TEST((goes_on(one, "13") && !goes_on(one, "12") && !goes_on(one, "")));
  const auto two = attempts_of(ledger_line(first) + "no line of it\n" + ledger_line(second));
  BOOST_REQUIRE(two.size() == 2u);
  BOOST_TEST((goes_on(two, "13") && !goes_on(two, "14")));  // the job was requeued
  BOOST_TEST((excluded_by(two) == std::vector<std::string>{"n1"}));
  second.status = 0;
  BOOST_TEST(!goes_on(attempts_of(ledger_line(second)), "13"));
}

BOOST_AUTO_TEST_CASE(a_handover_is_for_the_same_command) {
  const std::vector<std::string> command = {"srun", "train"};
  std::map<std::string, std::string, std::less<>> variables;
  for (const std::string& entry : handover_variables({"slurm-12", 3, "/ckpt/17"}, command))
    variables[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
  const auto handed = handover_of(command, lookup(variables));
  BOOST_REQUIRE(handed);
  BOOST_TEST(handed->run == "slurm-12");
  BOOST_TEST(handed->number == 3u);
  BOOST_TEST(handed->resume == "/ckpt/17");
  BOOST_TEST(!handover_of({"srun", "evaluate"}, lookup(variables)));
  variables[kSuccessorVariable].insert(0, "../");
  BOOST_TEST(!handover_of(command, lookup(variables)));
  BOOST_TEST(!handover_of(command, lookup({})));
}

BOOST_AUTO_TEST_CASE(a_tool_has_limits_and_says_why_it_failed) {
  BOOST_TEST(output_of({.words = {"printf", "a\\nb"}}).value() == "a\nb");
  BOOST_TEST(output_of({.words = {"printenv", "X"}, .environment = {"X=1"}}).value() == "1\n");
  BOOST_TEST(output_of({.words = {"no-such-tool"}}).error().text == "no-such-tool: is not installed here");
  BOOST_TEST(output_of({.words = {"sh", "-c", "echo why >&2; exit 3"}}).error().text ==
             "sh: exit code 3: why");
  BOOST_TEST(
      output_of({.words = {"sleep", "60"}, .within_ns = kNsPerSecond / 4}).error().text.find("did not end") !=
      std::string::npos);
  BOOST_TEST(output_of({.words = {"yes"}, .output_max = 1000}).error().text.find("wrote more") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
