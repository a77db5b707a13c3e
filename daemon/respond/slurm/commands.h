// Slurm's programs, as typed answers: scontrol and squeue with fixed arguments, never a shell. Reads only
// columns that a user of the cluster cannot write: `scontrol show job` begins with the job's name, and a name
// "x JobState=FAILED" would be a state.
//
// Judged by Slurm 22.05. Blocking; any thread. Names are checked by the caller (respond/order.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/program.h"
#include "model/recovery.h"
#include "respond/executor.h"

namespace culprit::respond::slurm {

class SparePool;

struct SlurmError {
  enum class Kind : uint8_t {
    kNotFound,   // no such node or job
    kRefused,    // Slurm's answer is no
    kNoAnswer,   // slurmctld is away or slow; after a write it may have been done
    kMalformed,  // an answer that is none
  } kind = Kind::kNoAnswer;
  std::string text;  // "scontrol update: Invalid user id"
};
template <class T>
using SlurmResult = tl::expected<T, SlurmError>;

struct NodeState {
  std::vector<std::string> flags;  // "IDLE", "DRAIN", "NOT_RESPONDING"; signs after the state as their flags
  std::string reason;              // without "[user@time]"
  std::string by;                  // "root@1795978682"

  bool has(std::string_view prefix) const;  // a flag begins with it
  std::string flags_text() const;           // "IDLE+DRAIN"
};

struct JobState {
  std::string state;  // "RUNNING"
  ScheduledJob job;
  bool batch = false;
  std::string nodes;   // host list, "n[1-3]"
  std::string reason;  // why it is pending
};

// Why a job is pending after `scontrol requeuehold`; a hold of a pending job is JobHeldUser or JobHeldAdmin.
constexpr std::string_view kRequeuedHeld = "job requeued in held state";

// Parse one line of `scontrol -o show node` and of kJobFormat.
SlurmResult<NodeState> parse_node(std::string_view text, std::string_view name);
SlurmResult<JobState> parse_job(std::string_view text, std::string_view id);
// One line of `scontrol -o show reservation`.
struct Reservation {
  uint32_t nodes = 0;                // 0: there is none
  std::string node_list, partition;  // "n[5-6]", "train"
};
SlurmResult<Reservation> parse_reservation(std::string_view text, std::string_view name,
                                           std::string_view partition);

// Runs a program; tests have their own.
using ProgramRunner = std::function<io::ProgramEnd(const io::ProgramRun&)>;

struct SlurmOptions {
  std::string scontrol = "/usr/bin/scontrol", squeue = "/usr/bin/squeue";
  std::string conf;                       // slurm.conf; empty: Slurm's default
  TimeNs command_ns = 15 * kNsPerSecond;  // Slurm's own MessageTimeout is 10 s
  // After a requeue, until it is reported as released: KillWait is 30 s, and a slurmctld that was away asks
  // its nodes again within 2 min.
  TimeNs tasks_end_ns = 180 * kNsPerSecond;
  TimeNs start_ns = 10 * kNsPerSecond;  // after the release, until it is reported as pending
  TimeNs round_ns = 100 * kNsPerMs;
  // After a write that gave no answer, it may still be on its way.
  TimeNs settle_ns = 2 * kNsPerSecond;
  // An order waits so long for slurmctld to answer (it restarts, or fails over), and asks each away_round_ns.
  TimeNs away_ns = 300 * kNsPerSecond, away_round_ns = kNsPerSecond;
  std::shared_ptr<SparePool> spares = {};    // null: jobs that run again wait for idle nodes
  TimeNs next_spares_ns = 5 * kNsPerSecond;  // a job that still waits gets the next one
  bool observe = false;                      // read and check alone; the result says what would be done
  ProgramRunner run = io::run_program;
};

class Commands {
 public:
  // Borrows both.
  Commands(const SlurmOptions& options, const Pace& pace) : options_(options), pace_(pace) {}

  SlurmResult<NodeState> node(const std::string& name) const;
  SlurmResult<JobState> job(const std::string& id) const;
  // ExcNodeList of the job, a host list; empty: none.
  SlurmResult<std::string> excluded(const std::string& id) const;
  SlurmResult<std::vector<std::string>> expand(const std::string& host_list) const;
  // kRefused if it does not replace nodes that are down, or is of another partition (empty: any): it is not
  // the pool.
  SlurmResult<Reservation> reservation(const std::string& name, const std::string& partition) const;
  // All jobs and all nodes, a line each: see SlurmLook.
  SlurmResult<std::string> job_lines() const;
  SlurmResult<std::string> node_lines() const;
  // `scontrol WORDS`; `urgent`: also while the daemon stops, within 2 s.
  SlurmResult<void> write(std::vector<std::string> words, bool urgent = false) const;

 private:
  SlurmResult<std::string> output(const std::string& path, std::vector<std::string> words,
                                  bool urgent = false) const;
  const SlurmOptions& options_;
  const Pace& pace_;
};

}  // namespace culprit::respond::slurm
