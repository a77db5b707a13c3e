#include "sim/cluster/controlled.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/cluster/diagnosis.h"

namespace culprit::sim {
namespace {

constexpr TimeNs kSubmitted = 1;
constexpr const char* kPartition = "train";

}  // namespace

ControlledSupervisor::ControlledSupervisor(const ControlOptions& options, const ClusterParams& params,
                                           uint32_t hosts)
    : options_(options), controller_(options.controller) {
  for (uint32_t i = 0; i < hosts; ++i) names_.push_back(fmt::format("node-{}", i));
  jobs_.resize(static_cast<size_t>(params.jobs));
  for (size_t i = 0; i < jobs_.size(); ++i) {
    jobs_[i].name.scheduler = "slurm";
    jobs_[i].name.id = fmt::format("{}", 1000 + i);
    jobs_[i].name.submit_ns = kSubmitted;
  }
}

uint32_t ControlledSupervisor::number_of(const std::string& host) {
  uint32_t number = 0;
  const size_t dash = host.rfind('-') + 1;
  std::from_chars(host.data() + dash, host.data() + host.size(), number);
  return number;
}

std::vector<ClusterOrder> ControlledSupervisor::step(const ClusterInput& input, TimeNs now) {
  free_hosts_ = input.free_hosts;
  in_service_ = input.in_service;
  std::vector<recover::Input> inputs;
  if (!started_) inputs.push_back(recover::ClusterSeen{static_cast<uint32_t>(names_.size())});
  started_ = true;
  translate(input, now, inputs);
  std::vector<ClusterOrder> out;
  // An order whose result is known at once gives another round.
  for (int round = 0; round < 8 && !inputs.empty(); ++round) {
    const std::vector<recover::Order> orders = controller_.step(inputs, now);
    if (options_.watch) options_.watch(inputs, now, orders);
    collect(orders, now, out);
    inputs = std::exchange(later_, {});
  }
  // Their store is not simulated.
  controller_.drain_actions();
  controller_.drain_attempts();
  controller_.drain_machines();
  hold(out);
  return out;
}

void ControlledSupervisor::translate(const ClusterInput& input, TimeNs now,
                                     std::vector<recover::Input>& out) {
  using Kind = ClusterInput::Kind;
  Job& job = jobs_[input.job];
  if (input.kind == Kind::kDone) {
    const auto given = given_.find(input.order);
    const bool isolated = given != given_.end() && given->second.kind == ClusterOrder::Kind::kIsolate;
    if (isolated && input.passed) note_service(given->second.host, true);
    out.push_back(means_of(job));
  }
  switch (input.kind) {
    case Kind::kRuns:
      return runs(input, now, out);
    case Kind::kVerdict:
      return verdict(input, now, out);
    case Kind::kDone:
      return done(input, now, out);
    case Kind::kProgress:
      out.push_back(recover::ProgressSeen{job.name, input.iteration, input.saved});
      return;
    case Kind::kSilent:
      if (options_.ignores_hangs) return;
      out.push_back(recover::SuspectsSeen{job.name, {}, true, "no progress"});
      return;
    case Kind::kEnded: {
      job.alive = false;
      out.push_back(means_of(job));
      if (input.by_person) {
        out.push_back(recover::JobChanged{job.name, recover::ForeignKind::kStarted, "admin"});
        return;
      }
      recover::AttemptEnded ended{job.name, recover::JobEnd::kFailed, {}, "FAILED"};
      if (input.node_failed) {
        ended.end = recover::JobEnd::kNodeFailed;
        ended.failed_hosts.push_back(names_[input.host]);
        ended.word = "NODE_FAIL";
      }
      out.push_back(std::move(ended));
      return;
    }
    case Kind::kChecked:
      give_means_of_waiting(out);
      out.push_back(recover::HostChecked{names_[input.host],
                                         input.busy     ? recover::CheckAnswer::kNoAnswer
                                         : input.passed ? recover::CheckAnswer::kPassed
                                                        : recover::CheckAnswer::kFailed,
                                         ""});
      return;
    case Kind::kHostOut:
    case Kind::kHostBack:
      note_service(input.host, input.kind == Kind::kHostOut);
      give_means_of_waiting(out);
      out.push_back(recover::HostSeen{names_[input.host], input.kind == Kind::kHostOut, "",
                                      input.by_person ? "admin" : "slurm", kPartition});
      return;
    case Kind::kWake:
      give_means_of_waiting(out);
      out.push_back(recover::Tick{});
      return;
    case Kind::kTruth:
      return;
  }
}

recover::JobMeans ControlledSupervisor::means_of(const Job& job) const {
  recover::JobMeans out;
  out.job = job.name;
  out.means.spares = free_hosts_;
  out.means.may_requeue = true;
  out.eligible = eligible(job);
  out.checkpoint = true;
  return out;
}

// A scheduler's view each few seconds has them.
void ControlledSupervisor::give_means_of_waiting(std::vector<recover::Input>& out) const {
  for (const Job& job : jobs_)
    if (!job.pending.empty()) {
      recover::JobMeans means = means_of(job);
      means.pending = true;
      means.pending_reason = "Resources";
      out.push_back(std::move(means));
    }
}

void ControlledSupervisor::runs(const ClusterInput& input, TimeNs now, std::vector<recover::Input>& out) {
  Job& job = jobs_[input.job];
  job.hosts.clear();
  for (const uint32_t host : input.hosts) job.hosts.push_back(names_[host]);
  job.name.restarts = input.attempt;
  job.alive = true;
  job.held = job.older = false;
  job.measured.clear();
  out.push_back(recover::AttemptStarted{job.name, job.hosts, kPartition, input.iteration,
                                        fmt::format("step-{}", input.iteration)});
  out.push_back(means_of(job));
  for (std::string& op : job.pending)
    out.push_back(ActionResult{std::move(op), ActionState::kDone, "runs", job.hosts, now});
  job.pending.clear();
}

void ControlledSupervisor::verdict(const ClusterInput& input, TimeNs now, std::vector<recover::Input>& out) {
  Job& job = jobs_[input.job];
  ClusterVerdict v = input.verdict;
  if (options_.blind_to >> static_cast<uint32_t>(v.looks) & 1) {
    v.hosts.clear();
    v.looks = v.looks == Looks::kHangHost || v.looks == Looks::kHangGroup ? Looks::kHangUnknown
                                                                          : Looks::kCrashUnknown;
  }
  const bool alive = job.alive && input.attempt == job.name.restarts;
  if (options_.ignores_hangs && alive &&
      (v.looks == Looks::kHangHost || v.looks == Looks::kHangGroup || v.looks == Looks::kHangUnknown))
    return;
  recover::VerdictSeen seen;
  seen.job = job.name;
  seen.job.restarts = input.attempt;
  seen.diagnosis = diagnosis_of(v, names_, now);
  seen.alive = alive;
  seen.also = authors_of(v);
  if (options_.trusts_users) seen.also.kernel = true;
  if (v.looks == Looks::kSlowHost && !v.hosts.empty()) {
    seen.measured = ++job.measured[v.hosts.front()];
    seen.step_share = 0.167;  // a step that takes 20 % longer
  }
  job.older = seen.diagnosis.restart.kind == Restart::kOlder;
  out.push_back(means_of(job));
  out.push_back(std::move(seen));
}

void ControlledSupervisor::done(const ClusterInput& input, TimeNs now, std::vector<recover::Input>& out) {
  const auto at = given_.find(input.order);
  if (at == given_.end()) return;
  const Given given = std::move(at->second);
  given_.erase(at);
  if (given.kind == ClusterOrder::Kind::kRunAgain && input.waits) {  // the result comes when it runs
    jobs_[input.job].pending.push_back(given.op);
    recover::JobMeans means = means_of(jobs_[input.job]);
    means.pending = true;
    means.pending_reason = "Resources";
    out.push_back(std::move(means));
    return;
  }
  ActionResult result{given.op, input.passed ? ActionState::kDone : ActionState::kFailed, "", {}, now};
  const bool of_host =
      given.kind == ClusterOrder::Kind::kIsolate || given.kind == ClusterOrder::Kind::kReturn;
  if (!input.passed) result.detail = of_host ? "the host is out already" : "the job has not ended";
  out.push_back(std::move(result));
  if (!of_host || !input.passed) return;
  const bool isolated = given.kind == ClusterOrder::Kind::kIsolate;
  note_service(given.host, isolated);
  out.push_back(
      recover::HostSeen{names_[given.host], isolated, isolated ? given.op : "", "culprit", kPartition});
}

// ---- orders

void ControlledSupervisor::add(ClusterOrder order, std::string op, std::vector<ClusterOrder>& out) {
  order.id = ++orders_;
  given_.emplace(order.id, Given{order.kind, std::move(op), order.host});
  out.push_back(std::move(order));
}

void ControlledSupervisor::collect(const std::vector<recover::Order>& orders, TimeNs now,
                                   std::vector<ClusterOrder>& out) {
  for (const recover::Order& order : orders) {
    if (const auto* one = std::get_if<ActionOrder>(&order)) action(*one, now, out);
    const auto* checks = std::get_if<recover::CheckOrder>(&order);
    if (checks == nullptr) continue;
    for (const std::string& host : checks->hosts) {
      ClusterOrder check;
      check.kind = ClusterOrder::Kind::kCheck;
      check.host = number_of(host);
      check.job_waits = !checks->job.empty();
      add(std::move(check), "", out);
    }
  }
}

void ControlledSupervisor::action(const ActionOrder& order, TimeNs now, std::vector<ClusterOrder>& out) {
  ClusterOrder next;
  const auto job = static_cast<uint32_t>(
      std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& j) { return j.name.id == order.job.id; }) -
      jobs_.begin());
  if (order.kind != OrderKind::kIsolate && order.kind != OrderKind::kReturn && job == jobs_.size()) return;
  next.job = job == jobs_.size() ? 0 : job;
  switch (order.kind) {
    case OrderKind::kIsolate: {
      next.kind = ClusterOrder::Kind::kIsolate;
      next.host = number_of(order.target);
      const auto view = controller_.view(recover::key_of(order.job));
      next.over_isolation = view && view->machine == recover::Machine::kGroup;
      break;
    }
    case OrderKind::kReturn:
      next.kind = ClusterOrder::Kind::kReturn;
      next.host = number_of(order.target);
      break;
    case OrderKind::kEndTasks:
      next.kind = ClusterOrder::Kind::kEndTasks;
      break;
    case OrderKind::kRunAgain:
      next.kind = ClusterOrder::Kind::kRunAgain;
      next.older = jobs_[job].older && !options_.newest_checkpoint;
      for (const std::string& host : order.excluded) next.excluded.push_back(number_of(host));
      break;
    case OrderKind::kVerify:
      if (jobs_[job].alive)
        later_.push_back(ActionResult{order.op, ActionState::kDone, "runs", jobs_[job].hosts, now});
      else
        jobs_[job].pending.push_back(order.op);
      return;
  }
  add(std::move(next), order.op, out);
}

void ControlledSupervisor::note_service(uint32_t host, bool out) {
  if (out)
    out_.insert(host);
  else
    out_.erase(host);
}

uint32_t ControlledSupervisor::eligible(const Job& job) const {
  const auto view = controller_.view(recover::key_of(job.name));
  if (!view) return in_service_;
  uint32_t without = 0;
  for (const std::string& host : view->excluded) without += !out_.contains(number_of(host));
  return in_service_ - std::min(in_service_, without);
}

// A job that the controller holds, or that ended for it, waits for a person.
void ControlledSupervisor::hold(std::vector<ClusterOrder>& out) {
  for (uint32_t i = 0; i < jobs_.size(); ++i) {
    Job& job = jobs_[i];
    if (job.alive || job.held) continue;
    const auto view = controller_.view(recover::key_of(job.name));
    if (!view || view->state != recover::JobState::kHeld) continue;
    job.held = true;
    ClusterOrder order;
    order.kind = ClusterOrder::Kind::kHold;
    order.job = i;
    out.push_back(std::move(order));
  }
}

}  // namespace culprit::sim
