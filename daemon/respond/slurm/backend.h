// Isolates and returns nodes, and runs jobs again, at Slurm (docs/operations.md, "What the controller does
// at Slurm and Kubernetes").
//
// A drain overwrites an administrator's reason, and Slurm has no compare-and-set: each step reads the real
// state, decides, writes and reads back. Only nodes in service are drained; only our own are
// returned. A job is its id, time of submission and number of restarts; each step looks at them again.
//
// The owner of a job, or an operator of Slurm, may run it again; only an operator may drain. The agents end
// the job's processes (kEndTasks): a requeue alone waits KillWait for tasks that ignore SIGTERM. Never
// reboots, powers down, suspends or sets State=DOWN.
#pragma once

#include "respond/executor.h"
#include "respond/slurm/commands.h"

namespace culprit::respond::slurm {

class SlurmBackend final : public Backend {
 public:
  explicit SlurmBackend(SlurmOptions options) : options_(std::move(options)) {}
  std::string_view name() const override { return "slurm"; }
  bool can(OrderKind kind) const override { return kind != OrderKind::kEndTasks; }
  ActionResult carry_out(const ActionOrder& order, Pace& pace) const override;

 private:
  const SlurmOptions options_;
};

// "culprit:XID79 d-0001 0123456789abcdef", the reason of our drain.
std::string drain_reason(const ActionOrder& order);
// Whether the reason is of a drain of this decision, or of this very order.
bool is_own_reason(std::string_view reason, const ActionOrder& order);

}  // namespace culprit::respond::slurm
