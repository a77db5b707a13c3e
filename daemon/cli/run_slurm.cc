#include "cli/run_slurm.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cli/environment.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

void stop(app::Attempt& attempt, std::string why) {
  attempt.decision = {};
  attempt.decision.why = std::move(why);
  attempt.decision.code = recover::kElsewhereHelps;
}

// A file of this user alone; empty: none can be made.
std::string file_for_script() {
  std::string path = variable("TMPDIR").value_or("/tmp") + "/culprit-successor-XXXXXX";
  const int fd = ::mkstemp(path.data());
  if (fd < 0) return {};
  ::close(fd);
  return path;
}

}  // namespace

SlurmAttempts::SlurmAttempts(SlurmOptions options, const std::vector<app::Attempt>& earlier)
    : options_(std::move(options)) {
  if (!options_.successor && earlier.empty()) return;
  find_job();
  if (!job_ && options_.successor)
    report_error("--successor: " + (why_none_.empty() ? "this is no batch job of Slurm" : why_none_));
  if (!job_) return;
  for (const std::string& node : app::excluded_by(earlier))
    if (std::ranges::find(job_->nodes(), node) != job_->nodes().end()) excluded_.push_back(node);
}

void SlurmAttempts::find_job() {
  if (!std::exchange(sought_, true)) job_ = app::BatchJob::find(variable, why_none_);
}

std::vector<std::string> SlurmAttempts::command() const {
  return app::excluding(options_.command, excluded_);
}

void SlurmAttempts::look(app::Attempt& attempt) {
  find_job();
  if (!job_) return;
  attempt.failure.ran_on.clear();  // with spare nodes they are not known
  if (job_->spares(options_.command, excluded_) == 0)
    for (const std::string& node : job_->nodes())
      if (std::ranges::find(excluded_, node) == excluded_.end()) attempt.failure.ran_on.push_back(node);
  auto state = job_->ask();
  if (!state) return report_error(state.error().text);
  state_ = std::move(*state);
  if (!options_.successor || !(state_->time_limit || state_->preempted)) return;
  ended_ = true;
  attempt.failure.preempted = state_->preempted;
  attempt.headline = state_->preempted ? "Slurm preempted the job" : "Slurm's time limit ended the job";
  attempt.failure.root = "slurm: " + attempt.headline;
  attempt.failure.hang = false;
  attempt.failure.advice = {};
  attempt.failure.advice.kind = Restart::kSame;
  attempt.failure.advice.sure = true;
}

void SlurmAttempts::add_to(recover::Means& means, TimeNs now) const {
  if (!job_) return;
  means.spares = job_->spares(options_.command, excluded_);
  means.may_requeue = options_.successor && !options_.is_lost && state_ && state_->batch;
  if (means.left_ns == kNoTime && state_ && state_->end_ns != kNoTime) means.left_ns = state_->end_ns - now;
  if (ended_) means.left_ns = 0;
}

// The decision's hosts as nodes; empty: they are none of this allocation.
std::vector<std::string> SlurmAttempts::nodes_of(const recover::Decision& decision) const {
  std::vector<std::string> out;
  for (const std::string& host : decision.hosts)
    if (std::string node = app::node_named(host, job_->nodes()); !node.empty())
      out.push_back(std::move(node));
  // A device's host may be unknown, but not where there is just one.
  if (out.empty() && job_->nodes().size() == 1) out = job_->nodes();
  return out;
}

bool SlurmAttempts::take_way(app::Attempt& attempt, const std::string& resume) {
  recover::Decision& decision = attempt.decision;
  if (!job_ || decision.way == recover::Way::kNone || decision.way == recover::Way::kShrink) return true;
  if (!decision.hosts.empty() || !decision.devices.empty()) {
    attempt.leaves_out = nodes_of(decision);
    if (attempt.leaves_out.empty())
      return stop(attempt, fmt::format("not started again: {}, which is no node of this job", decision.why)),
             false;
  }
  if (decision.way == recover::Way::kRequeue) return submit(attempt, resume);
  std::vector<std::string> excluded = excluded_;
  excluded.insert(excluded.end(), attempt.leaves_out.begin(), attempt.leaves_out.end());
  const Status tried = job_->try_step(options_.command, excluded);
  if (tried) return excluded_ = std::move(excluded), true;
  report_error(fmt::format("no other node of this job can be used: {}", tried.error().text));
  recover::Means means;
  add_to(means, kNoTime);
  if (means.may_requeue) return submit(attempt, resume);
  stop(attempt, fmt::format("not started again here: it must run {}", decision.why));
  return false;
}

// Returns false.
bool SlurmAttempts::submit(app::Attempt& attempt, const std::string& resume) {
  if (attempt.failure.preempted && job_->requeues_preempted(*state_))
    return stop(attempt, "not started again: Slurm itself requeues the job"), false;
  app::Successor successor;
  successor.exclude = excluded_;
  successor.exclude.insert(successor.exclude.end(), attempt.leaves_out.begin(), attempt.leaves_out.end());
  if (attempt.failure.advice.kind == Restart::kLater) successor.wait_ns = attempt.decision.wait_ns;
  successor.environment =
      app::handover_variables({options_.run, attempt.number + 1, resume}, options_.command);
  const std::string script = file_for_script();
  const auto id = job_->submit(successor, script);
  ::unlink(script.c_str());  // Slurm has its own copy
  if (!id) return stop(attempt, "no successor: " + id.error().text), false;
  attempt.successor = *id;
  report_error(fmt::format("job {} goes on when this one has ended: {}{}", *id, attempt.decision.why,
                           resume.empty() ? "" : ", from " + resume));
  return false;
}

}  // namespace culprit::cli
