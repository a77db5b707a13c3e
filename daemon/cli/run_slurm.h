// `culprit run --retries` in a batch job of Slurm: what Slurm says of the job at an attempt's end, and the
// ways of the next attempt: without some nodes in the same allocation, or in a successor job. Blocks; one
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/run/attempt.h"
#include "app/run/chain.h"
#include "app/run/slurm.h"
#include "core/recover/decide.h"

namespace culprit::cli {

struct SlurmOptions {
  bool successor = false;            // a successor job may go on
  bool is_lost = false;              // this job is a successor, and the attempts before it are not readable
  std::string run;                   // name of the run
  std::vector<std::string> command;  // with placeholders
};

class SlurmAttempts {
 public:
  SlurmAttempts(SlurmOptions options, const std::vector<app::Attempt>& earlier);

  // The command without the nodes that earlier attempts left out.
  std::vector<std::string> command() const;
  // Fills in what Slurm says of the job: its nodes, and whether Slurm ends it. Call before the
  // failure is in the ledger.
  void look(app::Attempt& attempt);
  // Whether Slurm ends this job, and a successor may go on.
  bool is_ended_by_slurm() const { return ended_; }
  void add_to(recover::Means& means, TimeNs now) const;
  // Takes the decision's way. False: no attempt follows here, since a successor goes on, or since the way
  // failed, which then ends the attempts.
  bool take_way(app::Attempt& attempt, const std::string& resume);

 private:
  void find_job();
  std::vector<std::string> nodes_of(const recover::Decision& decision) const;
  bool submit(app::Attempt& attempt, const std::string& resume);

  SlurmOptions options_;
  std::optional<app::BatchJob> job_;
  bool sought_ = false;
  std::string why_none_;               // why there is no job; empty: not in Slurm
  std::vector<std::string> excluded_;  // nodes of this allocation
  std::optional<app::SlurmJob> state_;
  bool ended_ = false;
};

}  // namespace culprit::cli
