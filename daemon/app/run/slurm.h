// A batch job of Slurm, as its own user sees it from inside: whether it ends, its nodes, another step without
// some of them, and a successor job. Changes nothing of the job itself and needs no rights.
//
// What Slurm prints is untrusted, and every program has a time limit. The parsers are pure; BatchJob blocks.
// One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/run/launch.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

// State of the job according to `scontrol -o show job`, with times in seconds since the epoch.
struct SlurmJob {
  bool batch = false;       // it has a script
  bool requeue = false;     // Slurm may requeue it
  bool time_limit = false;  // Slurm ends it: its time is over
  bool preempted = false;   // Slurm ends it: another job needs the nodes
  TimeNs end_ns = kNoTime;  // kNoTime: no limit
  std::string partition;    // the following are empty if not given
  std::string qos;
  std::string excluded;  // nodes that its user excluded, as "n[1-3]"
  std::string time;      // limit, as "1-00:00:00"
  std::string folder;    // working folder
  std::string out, err;  // files of its output
  std::string gres;      // of each node, as "gpu:8"
  std::string features;  // that nodes must have
  bool exclusive = false;
  std::string command;  // path of the script and its arguments, separated by single spaces
};
Result<SlurmJob> slurm_job_of(std::string_view text);

// Whether Slurm requeues a preempted job: by its QOS or partition, which may have a mode of their own, else
// by the cluster. The texts are those of `scontrol show config`, `scontrol -o show partition` and
// `sacctmgr -nP show qos format=PreemptMode`.
bool requeues(std::string_view config, std::string_view partition, std::string_view qos);
bool preempts_by_qos(std::string_view config);

// Nodes that the step of an `srun` needs (-N); nothing: not stated, or no `srun`.
std::optional<uint32_t> nodes_of_step(const std::vector<std::string>& command);
// Whether the command is an `srun` whose output comes from other hosts too.
bool spans_hosts(const std::vector<std::string>& command, const Lookup& variable);
// Whether `srun` may get another --exclude: it is one, and does not choose its nodes by itself.
bool can_exclude(const std::vector<std::string>& command);
// The command with these nodes excluded.
std::vector<std::string> excluding(std::vector<std::string> command, const std::vector<std::string>& nodes);

// The node with this name, in the form of a log: "n1", or "n1.cluster". Empty: none.
std::string node_named(std::string_view host, const std::vector<std::string>& nodes);

// Arguments of the batch script in the command line of its interpreter; nothing: no such command line.
// `line`: as in /proc/PID/cmdline.
std::optional<std::vector<std::string>> script_arguments(std::string_view line);

// Options of `sbatch` with which a successor gets what this job got.
std::vector<std::string> successor_options(const SlurmJob& job, const Lookup& variable);

struct Successor {
  std::vector<std::string> exclude;      // nodes
  TimeNs wait_ns = 0;                    // before it may start
  std::vector<std::string> environment;  // NAME=VALUE
};

class BatchJob {
 public:
  // The allocation in whose script this process runs. Nothing: there is none, or Slurm does not answer; `why`
  // then has the reason, empty outside of Slurm.
  static std::optional<BatchJob> find(const Lookup& variable, std::string& why);

  const std::string& id() const { return id_; }
  const std::vector<std::string>& nodes() const { return nodes_; }
  Result<SlurmJob> ask() const;
  // Whether Slurm itself runs a preempted job again. Asks once.
  bool requeues_preempted(const SlurmJob& job);
  // Number of nodes that the command does not need, without the excluded ones. 0 where unknown.
  uint32_t spares(const std::vector<std::string>& command, const std::vector<std::string>& excluded) const;
  // Runs a step on as many nodes as the command's, without the excluded ones. The error says why it cannot.
  Status try_step(const std::vector<std::string>& command, const std::vector<std::string>& excluded) const;
  // Submits this job's script once more, to begin when this job has ended. `script`: path for its copy.
  // Returns the successor's id.
  Result<std::string> submit(const Successor& successor, const std::string& script) const;

 private:
  Lookup variable_;
  std::string id_;
  std::vector<std::string> nodes_;
  std::optional<bool> requeues_;
};

}  // namespace culprit::app
