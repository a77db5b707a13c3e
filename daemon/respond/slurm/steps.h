// The steps of one order at Slurm; see backend.h. One use each.
#pragma once

#include <string>
#include <vector>

#include "model/recovery.h"
#include "respond/slurm/commands.h"

namespace culprit::respond::slurm {

// What all orders share.
class Steps {
 public:
  // Borrows all.
  Steps(const ActionOrder& order, const SlurmOptions& options, Pace& pace)
      : order_(order), options_(options), pace_(pace), commands_(options, pace) {}

 protected:
  ActionResult result(ActionState state, std::string detail) const;
  // Of an error before anything was written.
  ActionResult unchanged(const SlurmError& error) const;

  const ActionOrder& order_;
  const SlurmOptions& options_;
  Pace& pace_;
  const Commands commands_;
};

// kIsolate and kReturn.
class NodeSteps : Steps {
 public:
  using Steps::Steps;
  ActionResult isolate();
  ActionResult give_back();

 private:
  // After a write without an answer: whether it arrived.
  SlurmResult<NodeState> read_back(const SlurmResult<void>& written);
  ActionResult isolated_or_not(const NodeState& now, const SlurmResult<void>& written) const;
};

// kRunAgain and kVerify.
class JobSteps : Steps {
 public:
  using Steps::Steps;
  ActionResult run_again();
  ActionResult verify();

 private:
  std::optional<ActionResult> refuse(const JobState& job);
  // Held after an interrupted run of this order, with its hosts excluded.
  bool is_interrupted(const JobState& job);
  std::optional<ActionResult> check_excluded() const;
  std::optional<ActionResult> wait_for_end(const ScheduledJob& before);
  std::optional<ActionResult> exclude();
  ActionResult release_and_start();
  ActionResult running(const JobState& job);
  // Nothing stays held for ever: releases the job and reports why it is not as ordered.
  ActionResult give_up(ActionState state, std::string why);

  ScheduledJob current_;  // after the requeue
};

}  // namespace culprit::respond::slurm
