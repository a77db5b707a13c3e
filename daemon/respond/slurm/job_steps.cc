#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "respond/order.h"
#include "respond/slurm/steps.h"

namespace culprit::respond::slurm {
namespace {

constexpr int kExcludeTries = 3;

bool is_one_of(std::string_view state, std::initializer_list<std::string_view> states) {
  return std::ranges::find(states, state) != states.end();
}

// A job that has not started, or not yet again.
bool is_pending(const JobState& job) {
  return is_one_of(job.state, {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD"});
}

std::string describe_job(const JobState& job) {
  std::string out = fmt::format("job {}: {}", job.job.id, job.state);
  if (is_pending(job) && !job.reason.empty() && job.reason != "None") out += ", " + job.reason;
  if (!is_pending(job) && !job.nodes.empty()) out += " on " + job.nodes;
  return one_line(out);
}

std::string another_job(const JobState& job) {
  return fmt::format("{} has been submitted or requeued by others since", describe_job(job));
}

}  // namespace

std::optional<ActionResult> JobSteps::refuse(const JobState& job) {
  if (order_.job.submit_ns == kNoTime)
    return result(ActionState::kFailed, "the order has no time of submission to tell the job by");
  if (job.job.submit_ns != order_.job.submit_ns || job.job.restarts != order_.job.restarts)
    return result(ActionState::kSuperseded, another_job(job));
  if (is_pending(job) || is_one_of(job.state, {"CANCELLED", "COMPLETED"}))
    return result(ActionState::kSuperseded, describe_job(job));
  if (!job.batch)
    return result(ActionState::kFailed,
                  fmt::format("{} has no batch script to run again", describe_job(job)));
  return std::nullopt;
}

bool JobSteps::is_interrupted(const JobState& job) {
  if (job.state != "PENDING" || job.job.restarts != order_.job.restarts + 1 || order_.excluded.empty())
    return false;
  if (job.reason.find("held") == std::string::npos && job.reason.find("Held") == std::string::npos)
    return false;
  const auto list = commands_.excluded(job.job.id);
  const auto hosts = list ? commands_.expand(*list) : SlurmResult<std::vector<std::string>>{};
  return hosts && std::ranges::all_of(order_.excluded, [&](const std::string& host) {
           return std::ranges::find(*hosts, host) != hosts->end();
         });
}

// Slurm refuses the whole list for one unknown name, when the job is held already.
std::optional<ActionResult> JobSteps::check_excluded() const {
  for (const std::string& host : order_.excluded)
    if (const auto node = commands_.node(host); !node) return unchanged(node.error());
  return std::nullopt;
}

ActionResult JobSteps::give_up(ActionState state, std::string why) {
  const auto released = commands_.write({"release", order_.job.id}, true);
  return result(state, one_line(fmt::format("{}; {}", why,
                                            released ? "the job is released as it was"
                                                     : "the job may be held: " + released.error().text)));
}

std::optional<ActionResult> JobSteps::wait_for_end(const ScheduledJob& before) {
  const TimeNs until = pace_.now() + options_.tasks_end_ns;
  std::string last = "no answer";
  bool requeued = false;
  while (true) {
    if (const auto job = commands_.job(before.id)) {
      last = describe_job(*job);
      requeued = job->job.restarts == before.restarts + 1;
      if (requeued && job->state == "PENDING") {
        current_ = job->job;
        return std::nullopt;
      }
      if (job->state == "CANCELLED") return result(ActionState::kSuperseded, last);
      const bool untouched = job->job == before;
      if (!untouched && !requeued) return result(ActionState::kSuperseded, another_job(*job));
      if (requeued && job->state == "RUNNING" && job->job.submit_ns != before.submit_ns)
        return result(ActionState::kSuperseded, fmt::format("released by others, {}", last));
    } else if (job.error().kind == SlurmError::Kind::kNotFound) {
      return result(ActionState::kSuperseded, job.error().text);
    } else {
      last = job.error().text;
    }
    const bool goes_on = pace_.pause(options_.round_ns);
    if (goes_on && pace_.now() < until) continue;
    const std::string why = goes_on ? fmt::format("its tasks did not end within {}, {}",
                                                  format_duration(options_.tasks_end_ns), last)
                                    : "the daemon stops";
    return requeued ? give_up(ActionState::kAmbiguous, why) : result(ActionState::kAmbiguous, why);
  }
}

std::optional<ActionResult> JobSteps::exclude() {
  if (order_.excluded.empty()) return std::nullopt;
  std::string why;
  for (int i = 0; i < kExcludeTries; ++i) {
    if (i > 0 && !pace_.pause(options_.round_ns)) break;
    const auto own = commands_.excluded(order_.job.id);
    const auto hosts = own ? commands_.expand(*own) : tl::unexpected(own.error());
    if (!hosts) {
      why = hosts.error().text;
      continue;
    }
    std::string merged = *own;
    for (const std::string& host : order_.excluded)
      if (std::ranges::find(*hosts, host) == hosts->end()) merged += (merged.empty() ? "" : ",") + host;
    if (merged == *own) return std::nullopt;  // read back
    const auto written = commands_.write({"update", "JobId=" + order_.job.id, "ExcNodeList=" + merged});
    why = written ? "Slurm accepted the excluded nodes, but does not show them" : written.error().text;
  }
  return give_up(ActionState::kAmbiguous, fmt::format("the nodes are not excluded: {}", why));
}

ActionResult JobSteps::running(const JobState& job) {
  const auto hosts = commands_.expand(job.nodes);
  ActionResult out = result(ActionState::kDone, describe_job(job));
  out.job = job.job;
  if (!hosts) {
    out.state = ActionState::kAmbiguous;
    out.detail = one_line(fmt::format("{}; {}", out.detail, hosts.error().text));
    return out;
  }
  out.hosts = *hosts;
  for (const std::string& host : order_.excluded)
    if (std::ranges::find(*hosts, host) != hosts->end()) {
      out.state = order_.kind == OrderKind::kVerify ? ActionState::kFailed : ActionState::kAmbiguous;
      out.detail = one_line(fmt::format("{}, with the excluded {}", out.detail, host));
    }
  return out;
}

ActionResult JobSteps::release_and_start() {
  const auto before = commands_.job(order_.job.id);
  if (before && !(before->job == current_)) return result(ActionState::kSuperseded, another_job(*before));
  const auto released = commands_.write({"release", order_.job.id});
  if (!released && released.error().kind != SlurmError::Kind::kNoAnswer)
    return result(ActionState::kAmbiguous, fmt::format("the job is held: {}", released.error().text));
  const TimeNs until = pace_.now() + options_.start_ns;
  SlurmResult<JobState> job = tl::unexpected(SlurmError{});
  bool goes_on = true;
  do {
    // A requeued job waits two minutes otherwise. It is refused once the job runs.
    (void)commands_.write({"update", "JobId=" + order_.job.id, "StartTime=now"});
    job = commands_.job(order_.job.id);
    if (!job && job.error().kind == SlurmError::Kind::kNotFound)
      return result(ActionState::kSuperseded, job.error().text);
    if (job && !(job->job == current_)) return result(ActionState::kSuperseded, another_job(*job));
    if (job && job->state == "CANCELLED") return result(ActionState::kSuperseded, describe_job(*job));
    if (job && !is_pending(*job)) return running(*job);
    goes_on = pace_.pause(options_.round_ns);
  } while (goes_on && pace_.now() < until);
  if (!job) return result(ActionState::kAmbiguous, fmt::format("released; {}", job.error().text));
  const bool held =
      job->reason.find("Held") != std::string::npos || job->reason.find("held") != std::string::npos;
  ActionResult out = result(held ? ActionState::kAmbiguous : ActionState::kDone, describe_job(*job));
  out.job = job->job;
  return out;
}

ActionResult JobSteps::run_again() {
  const auto job = commands_.job(order_.job.id);
  if (!job && job.error().kind == SlurmError::Kind::kNotFound)
    return result(ActionState::kSuperseded, job.error().text);
  if (!job) return unchanged(job.error());
  const bool interrupted = is_interrupted(*job);
  if (!interrupted)
    if (auto no = refuse(*job)) return *no;
  if (auto no = check_excluded()) return *no;
  if (options_.observe)
    return result(ActionState::kDone, one_line(fmt::format("observe: would run job {} again without {}",
                                                           job->job.id, fmt::join(order_.excluded, ", "))));
  current_ = job->job;
  if (!interrupted) {
    const auto written = commands_.write({"requeuehold", order_.job.id});
    if (!written && written.error().kind != SlurmError::Kind::kNoAnswer) return unchanged(written.error());
    if (auto no = wait_for_end(job->job)) return *no;
  }
  if (auto no = exclude()) return *no;
  return release_and_start();
}

ActionResult JobSteps::verify() {
  const auto job = commands_.job(order_.job.id);
  if (!job)
    return result(
        job.error().kind == SlurmError::Kind::kNotFound ? ActionState::kSuperseded : ActionState::kFailed,
        job.error().text);
  // A requeue gives another time of submission and one restart more; a reused id begins at none.
  const bool same =
      order_.job.submit_ns == kNoTime ||
      (job->job.submit_ns == order_.job.submit_ns && job->job.restarts == order_.job.restarts) ||
      (job->job.submit_ns >= order_.job.submit_ns && job->job.restarts > order_.job.restarts);
  if (!same) return result(ActionState::kSuperseded, another_job(*job));
  if (job->state == "RUNNING") return running(*job);
  ActionResult out = result(ActionState::kFailed, describe_job(*job));
  out.job = job->job;
  return out;
}

}  // namespace culprit::respond::slurm
