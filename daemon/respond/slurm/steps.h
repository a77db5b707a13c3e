// The steps of one order at Slurm; see backend.h. One use each.
#pragma once

#include <functional>
#include <optional>
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
  // Reads until slurmctld answers, for away_ns at most.
  template <class Read>
  auto when_answered(const Read& read) const {
    const TimeNs until = pace_.now() + options_.away_ns;
    auto out = read();
    while (!out && out.error().kind == SlurmError::Kind::kNoAnswer && pace_.now() < until &&
           pace_.pause(options_.away_round_ns))
      out = read();
    return out;
  }

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
  SlurmResult<NodeState> node() const;
  ActionResult isolated_or_not(const NodeState& now, const SlurmResult<void>& written) const;
  ActionResult returned_or_not(const NodeState& now, const SlurmResult<void>& written) const;
  std::optional<ActionResult> refuse_return(const NodeState& now) const;
  // Reads and writes until `settled` takes the state for a result: slurmctld may give no answer to a write.
  // Its second argument is the last write; null: none yet.
  using Settled = std::function<std::optional<ActionResult>(const NodeState&, const SlurmResult<void>*)>;
  ActionResult write_node(const std::vector<std::string>& words, const Settled& settled) const;
};

// kRunAgain and kVerify.
class JobSteps : Steps {
 public:
  using Steps::Steps;
  ActionResult run_again();
  ActionResult verify();

 private:
  std::optional<ActionResult> refuse(const JobState& job);
  // This order requeued the job and was interrupted, by a crash or while slurmctld was away.
  bool is_half_done(const JobState& job) const;
  std::optional<ActionResult> check_excluded() const;
  SlurmResult<JobState> read_job() const { return commands_.job(order_.job.id); }
  // Requeues the job held, unless that is done, and reads it back.
  std::optional<ActionResult> requeue(bool done);
  std::optional<ActionResult> requeued_or_not(const JobState& job, bool& requeued);
  std::optional<ActionResult> exclude();
  ActionResult release_and_start();
  ActionResult running(const JobState& job);
  // Nodes that the job had and must not have again; sets own_.
  uint32_t lost_nodes(const JobState& job);
  // Before the release: spares for a job that would be the first to start and lacks nodes.
  void get_spares_first();
  bool awaits_reason(const SlurmResult<JobState>& job) const;
  // Hands over spares while the job is the first of those that wait for nodes. True: it did now.
  bool get_spares(const JobState& job);
  ActionResult with_spares(ActionResult out) const;
  // Nothing stays held for ever: releases the job and reports why it is not as ordered.
  ActionResult give_up(ActionState state, std::string why);

  // Waits until the next attempt may start; false: the daemon stops.
  bool await_next_second();

  bool held_ = true;                 // by our requeue, and not released yet
  uint32_t lost_ = 1, spares_ = 0;   // nodes; spares: handed over
  std::vector<std::string> own_;     // hosts of the attempt before, without the excluded ones
  bool may_have_spares_ = true;      // the pool is of a partition of the job
  TimeNs spares_ns_ = kNoTime;       // when last
  TimeNs quick_until_ns_ = kNoTime;  // until then Slurm is asked to look at the job again and again
  TimeNs last_attempt_ns_ = 0;       // when the attempt before was last seen to end; monotonic
};

}  // namespace culprit::respond::slurm
