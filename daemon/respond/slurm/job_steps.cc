#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "respond/order.h"
#include "respond/slurm/spare_need.h"
#include "respond/slurm/spare_pool.h"
#include "respond/slurm/steps.h"

namespace culprit::respond::slurm {
namespace {

constexpr int kExcludeTries = 3;
constexpr int kSparesPatience = 3;  // times the time to start, where spares may be needed
constexpr TimeNs kQuick = kNsPerSecond, kQuickWithSpares = 3 * kNsPerSecond;
// slurmd refuses credentials of a job until the second in which it ended is over: "Job credential revoked".
// The attempt would fail at once.
constexpr TimeNs kRevoked = kNsPerSecond;

bool is_one_of(std::string_view state, std::initializer_list<std::string_view> states) {
  return std::ranges::find(states, state) != states.end();
}

// A job that has not started, or not yet again.
bool is_pending(const JobState& job) {
  return is_one_of(job.state, {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD"});
}

bool is_held(const JobState& job) { return job.reason.starts_with("JobHeld") || job.reason == kRequeuedHeld; }

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

// A person's hold of the job is theirs; a hold by requeue is ours, since the ledger has this order.
bool JobSteps::is_half_done(const JobState& job) const {
  if (order_.repeats_ns == kNoTime || job.job.restarts != order_.job.restarts + 1) return false;
  if (job.state == "COMPLETING") return true;
  // The time of submission is in whole seconds.
  return is_pending(job) && !job.reason.starts_with("JobHeld") &&
         job.job.submit_ns + kNsPerSecond > order_.repeats_ns;
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

// What a state of the job means after the requeue; nothing: it is to be waited for.
std::optional<ActionResult> JobSteps::requeued_or_not(const JobState& job, bool& requeued) {
  requeued = job.job.restarts == order_.job.restarts + 1;
  if (job.state == "CANCELLED") return result(ActionState::kSuperseded, describe_job(job));
  const bool untouched = job.job.submit_ns == order_.job.submit_ns && job.job.restarts == order_.job.restarts;
  if (!untouched && !requeued) return result(ActionState::kSuperseded, another_job(job));
  if (requeued && job.state == "RUNNING" && job.job.submit_ns != order_.job.submit_ns)
    return result(ActionState::kSuperseded, fmt::format("released by others, {}", describe_job(job)));
  return std::nullopt;
}

std::optional<ActionResult> JobSteps::requeue(bool done) {
  TimeNs until = pace_.now() + options_.start_ns;
  const TimeNs latest = until + options_.away_ns;
  std::string last = "no answer";
  bool requeued = done, arrived = done, write = !done, again = false;
  while (true) {
    if (std::exchange(write, false)) {
      const auto written = commands_.write({"requeuehold", order_.job.id});
      arrived = written || written.error().kind != SlurmError::Kind::kNoAnswer;
      // A repetition is refused where the first one did arrive.
      if (!std::exchange(again, true) && !written && arrived) return unchanged(written.error());
    }
    const TimeNs asked_ns = pace_.now();
    bool silent = false;
    if (const auto now = read_job()) {
      last = describe_job(*now);
      if (auto out = requeued_or_not(*now, requeued)) return out;
      write = !arrived;
      last_attempt_ns_ = pace_.now();
      if (requeued) return std::nullopt;
    } else if (now.error().kind == SlurmError::Kind::kNotFound) {
      return result(ActionState::kSuperseded, now.error().text);
    } else {
      last = now.error().text;
      silent = true;
    }
    const bool goes_on = pace_.pause(write ? options_.settle_ns : options_.round_ns);
    // The time in which slurmctld is away is not the job's.
    if (silent) until = std::min(latest, until + (pace_.now() - asked_ns));
    if (goes_on && pace_.now() < until) continue;
    return give_up(ActionState::kAmbiguous,
                   goes_on ? fmt::format("the requeue is not seen, {}", last) : "the daemon stops");
  }
}

std::optional<ActionResult> JobSteps::exclude() {
  if (order_.excluded.empty()) return std::nullopt;
  std::string why;
  for (int i = 0; i < kExcludeTries; ++i) {
    const auto own = when_answered([this] { return commands_.excluded(order_.job.id); });
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
    if (!written && !pace_.pause(options_.round_ns)) break;
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

uint32_t JobSteps::lost_nodes(const JobState& job) {
  const auto hosts = commands_.expand(job.nodes);
  if (!hosts || hosts->empty()) return 1;
  const auto is_excluded = [&](const std::string& host) {
    return std::ranges::find(order_.excluded, host) != order_.excluded.end();
  };
  std::ranges::remove_copy_if(*hosts, std::back_inserter(own_), is_excluded);
  return std::max<uint32_t>(1, static_cast<uint32_t>(hosts->size() - own_.size()));
}

// A change of the job takes away the reason why it waits, until Slurm's next pass, 3 s later. Where spares
// depend on the reason, it is changed for a second, and again if Slurm has it wait, or spares came.
bool JobSteps::awaits_reason(const SlurmResult<JobState>& job) const {
  if (!options_.spares || !job || quick_until_ns_ == kNoTime) return false;
  return pace_.now() >= quick_until_ns_ && job->reason != "BeginTime";
}

// Slurm's word that the job lacks nodes comes with its next pass, and it takes one more to start the job. So
// the queue is read: where no other job could start, what the idle nodes leave missing is handed over
// while the job is still held.
void JobSteps::get_spares_first() {
  if (!options_.spares || options_.spares->nodes().value_or(0) == 0 || order_.excluded.empty()) return;
  const auto spares = options_.spares->read(commands_);
  const auto jobs = spares ? commands_.job_lines() : tl::unexpected(spares.error());
  const auto nodes = jobs ? commands_.node_lines() : tl::unexpected(jobs.error());
  if (!nodes || spares->hosts.empty()) return;
  const SpareNeed need =
      need_of_spares({order_.job.id, order_.excluded, own_, spares->hosts, spares->partition}, *jobs, *nodes);
  may_have_spares_ = need.fits;
  const uint32_t wanted = std::min(need.nodes, lost_);
  if (wanted == 0) return;
  spares_ns_ = pace_.now();
  const auto got = options_.spares->hand_over(commands_, wanted, spares_ns_);
  spares_ = got ? *got : wanted;  // what may have been done counts as done
}

// "Priority": another job would get the node.
bool JobSteps::get_spares(const JobState& job) {
  const bool first = job.reason == "Resources" || job.reason.starts_with("ReqNodeNotAvail");
  if (!options_.spares || !may_have_spares_ || !first || order_.excluded.empty()) return false;
  const TimeNs now = pace_.now();
  if (spares_ns_ != kNoTime && now - spares_ns_ < options_.next_spares_ns) return false;
  const uint32_t most = static_cast<uint32_t>(order_.excluded.size());
  const uint32_t nodes = spares_ns_ == kNoTime ? lost_ : 1;
  if (spares_ >= most) return false;
  const uint32_t more = std::min(nodes, most - spares_);
  const auto got = options_.spares->hand_over(commands_, more, now);
  spares_ns_ = now;
  spares_ += got ? *got : more;
  if (got && *got > 0) quick_until_ns_ = now + kQuickWithSpares;
  return got && *got > 0;
}

ActionResult JobSteps::with_spares(ActionResult out) const {
  if (spares_ > 0)
    out.detail =
        one_line(fmt::format("{}; {} of {} handed over", out.detail,
                             spares_ == 1 ? "1 node" : fmt::format("{} nodes", spares_), SparePool::kName));
  return out;
}

bool JobSteps::await_next_second() {
  const TimeNs left = last_attempt_ns_ + kRevoked - pace_.now();
  return left <= 0 || pace_.pause(left);
}

// The job is released as soon as its nodes are excluded, also while tasks of the last attempt end: if this
// process ends now, Slurm starts it two minutes later, as ordered.
ActionResult JobSteps::release_and_start() {
  TimeNs until = pace_.now() + options_.tasks_end_ns;
  const TimeNs latest = until + options_.away_ns;
  SlurmResult<JobState> now = tl::unexpected(SlurmError{});
  bool release = held_, ends = false, pending = false, goes_on = true;
  do {
    if (release) {
      const auto released = commands_.write({"release", order_.job.id});
      if (!released && released.error().kind != SlurmError::Kind::kNoAnswer)
        return result(ActionState::kAmbiguous, fmt::format("the job is held: {}", released.error().text));
    }
    // A requeued job waits two minutes otherwise. It is refused once the job runs.
    const TimeNs asked_ns = pace_.now();
    if (!ends && !awaits_reason(now) && await_next_second())
      (void)commands_.write({"update", "JobId=" + order_.job.id, "StartTime=now"});
    now = read_job();
    if (!now && now.error().kind == SlurmError::Kind::kNotFound)
      return result(ActionState::kSuperseded, now.error().text);
    if (now && now->job.restarts != order_.job.restarts + 1)
      return result(ActionState::kSuperseded, another_job(*now));
    if (now && now->state == "CANCELLED") return result(ActionState::kSuperseded, describe_job(*now));
    ends = now && now->state == "COMPLETING";
    if (ends) last_attempt_ns_ = pace_.now();
    if (now && !ends && !is_pending(*now)) return with_spares(running(*now));
    if (now && !ends && !std::exchange(pending, true)) {
      const TimeNs seen = pace_.now();
      const bool has_spares = options_.spares && options_.spares->nodes().value_or(0) > 0;
      quick_until_ns_ = seen + (spares_ > 0 ? kQuickWithSpares : kQuick);
      until = seen + options_.start_ns * (has_spares ? kSparesPatience : 1);
    }
    if (now && !ends && get_spares(*now)) until = pace_.now() + options_.start_ns;
    release = now && now->reason == kRequeuedHeld;  // never a hold by a person
    goes_on = pace_.pause(options_.round_ns);
    if (!now) until = std::min(latest, until + (pace_.now() - asked_ns));
  } while (goes_on && pace_.now() < until);
  if (!now) return result(ActionState::kAmbiguous, fmt::format("released; {}", now.error().text));
  if (is_held(*now) && !goes_on) return give_up(ActionState::kAmbiguous, "the daemon stops");
  ActionResult out = result(is_held(*now) ? ActionState::kAmbiguous : ActionState::kDone, describe_job(*now));
  out.job = now->job;
  return with_spares(std::move(out));
}

ActionResult JobSteps::run_again() {
  const auto now = when_answered([this] { return read_job(); });
  if (!now && now.error().kind == SlurmError::Kind::kNotFound)
    return result(ActionState::kSuperseded, now.error().text);
  if (!now) return unchanged(now.error());
  const bool half_done = is_half_done(*now);
  if (!half_done)
    if (auto no = refuse(*now)) return *no;
  if (auto no = half_done ? std::nullopt : check_excluded()) return *no;
  if (options_.observe)
    return result(ActionState::kDone, one_line(fmt::format("observe: would run job {} again without {}",
                                                           now->job.id, fmt::join(order_.excluded, ", "))));
  held_ = !half_done || now->reason == kRequeuedHeld;
  if (options_.spares && !half_done) lost_ = lost_nodes(*now);
  if (auto no = requeue(half_done)) return *no;
  if (auto no = exclude()) return *no;
  if (!half_done) get_spares_first();
  return release_and_start();
}

ActionResult JobSteps::verify() {
  const auto job = when_answered([this] { return read_job(); });
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
