// The controller's inputs about jobs, results and persons.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "core/recover/controller_impl.h"
#include "core/recover/cost.h"

namespace culprit::recover {
namespace {

// A host's clock may be so far behind the collector's (NTP keeps it far below).
constexpr TimeNs kClocksDiffer = 5 * kNsPerSecond;
// The scheduler's own time to place a job, before it gets another order.
constexpr TimeNs kAskAgainAfter = 60 * kNsPerSecond;
// Jobs in memory: more than a cluster runs in a day. Beyond it a new one is noted and not controlled.
constexpr size_t kControlledJobs = 100'000;

std::string id_of(const ScheduledJob& job) { return job.scheduler + "/" + job.id; }

// States in which a new attempt of the scheduler is not ours.
bool acts_before_start(JobState state) {
  return state == JobState::kStop || state == JobState::kCheck || state == JobState::kIsolate ||
         state == JobState::kPlace;
}

JobEvidence evidence_of(JobEnd end) {
  switch (end) {
    case JobEnd::kCompleted:
      return JobEvidence::kCompleted;
    case JobEnd::kCancelled:
      return JobEvidence::kCancelled;
    case JobEnd::kTimeLimit:
    case JobEnd::kPreempted:
      return JobEvidence::kTakenAway;
    case JobEnd::kNodeFailed:
      return JobEvidence::kNodeFailed;
    case JobEnd::kFailed:
      break;
  }
  return JobEvidence::kFailed;
}

Case node_failure_of(const std::vector<std::string>& hosts) {
  Case c;
  c.fault = FaultClass::kNodeFailure;
  c.authors.scheduler = true;
  c.root = "scheduler: host failed";
  c.code = "NODE-FAIL";
  c.title = "The scheduler reports a failed host";
  c.symptom = Symptom::kCrash;
  c.confidence = 1;
  c.hosts = c.confirmed = hosts;
  c.restart.kind = Restart::kElsewhere;
  c.restart.sure = true;
  c.restart.hosts = hosts;
  c.sources = 1;
  return c;
}

}  // namespace

ControlledJob* JobSteps::find(const ScheduledJob& job) {
  const auto at = jobs.find(key_of(job));
  return at == jobs.end() ? nullptr : &at->second;
}

void JobSteps::save_attempt(const ControlledJob& j) {
  if (j.attempt.attempt == 0) return;
  AttemptRecord record = j.attempt;
  record.excluded = excluded_of(j);
  if (record.end_ns != kNoTime && !record.decision.empty()) {
    const Loss loss = loss_of(record, nullptr);
    record.lost_s = loss.stalled_s + loss.redone_s;
  }
  attempts_out[fmt::format("{}#{}", j.key, record.attempt)] = std::move(record);
}

void JobSteps::begin_attempt(ControlledJob& j, const std::vector<std::string>& on) {
  const uint32_t number = j.attempt.attempt + 1;
  if (j.attempt.attempt != 0 && j.attempt.end_ns == kNoTime) {
    j.attempt.end_ns = now;
    save_attempt(j);
  }
  j.attempt = {};
  j.attempt.job = j.job;
  j.attempt.attempt = number;
  j.attempt.begin_ns = now;
  j.attempt.hosts = on;
  j.counted = j.made_progress = j.stalled = j.at_save = false;
  j.latest.reset();
  j.declined_root.reset();
  j.lead.reset();
  j.lead_is_restored = false;
  j.treatment = {};
  j.advice.reset();
  j.advised.clear();
}

void Controller::Impl::take(const ControllerOptions& in) {
  options = in;
  guard.configure(in.guard);
}

void Controller::Impl::take(const ClusterSeen& in) { guard.set_cluster(in.hosts); }

void Controller::Impl::take(const AttemptStarted& in) {
  const std::string key = key_of(in.job);
  // An id that comes again with another time of submission is another job.
  if (const auto other = key_by_id.find(id_of(in.job)); other != key_by_id.end() && other->second != key)
    if (const auto old = jobs.find(other->second); old != jobs.end() && old->second.state != JobState::kDone)
      apply(old->second, JobEvidence::kCancelled);
  key_by_id[id_of(in.job)] = key;
  const bool is_new = !jobs.contains(key);
  if (is_new && jobs.size() >= kControlledJobs)
    return note(NoteKind::kRecord, nullptr, fmt::format("{} is not controlled: too many jobs", key));
  ControlledJob& j = jobs[key];
  j.key = key;
  if (is_new) j.since_ns = now;
  const bool same = !is_new && j.attempt.attempt != 0 && in.job.restarts <= j.job.restarts;
  if (same && j.attempt.end_ns == kNoTime && !j.from_result) {  // known already
    j.alive = j.runs = true;
    if (!in.hosts.empty()) j.attempt.hosts = in.hosts;
    if (j.state == JobState::kHeld && !j.open) apply(j, JobEvidence::kStartedByOthers);
    return;
  }
  j.job = in.job;
  j.partition = in.partition;
  if (j.from_result) {
    j.attempt.job = in.job;
    j.attempt.hosts = in.hosts;
  } else {
    begin_attempt(j, in.hosts);
  }
  j.from_result = false;
  j.attempt.progress_from = in.from_iteration;
  j.attempt.checkpoint = in.checkpoint;
  j.alive = j.runs = true;
  save_attempt(j);
  if (is_new) return;
  if (j.state == JobState::kVerify)  // the scheduler took its time
    j.limit_ns = now + limit_of(JobState::kVerify, options.bounds, j.start_took_ns);
  if (acts_before_start(j.state) || j.state == JobState::kHeld)
    return apply(j, JobEvidence::kStartedByOthers);
  if (j.state == JobState::kSuspect || j.state == JobState::kDone) {
    j.state = JobState::kRun;
    j.since_ns = now;
    j.limit_ns = kNoTime;
  }
}

void Controller::Impl::take(const JobMeans& in) {
  ControlledJob* j = find(in.job);
  if (j == nullptr) return;
  j->means = in;
  j->eligible_change = 0;
  const bool waits = j->state == JobState::kRestart && in.pending;
  if (waits && now - j->since_ns >= kAskAgainAfter && frees_hosts(*j)) apply(*j, JobEvidence::kLimit);
}

void Controller::Impl::take(const VerdictSeen& in) {
  ControlledJob* j = find(in.job);
  if (j == nullptr)
    return note(NoteKind::kRecord, nullptr, fmt::format("{}: a verdict on an unknown job", key_of(in.job)));
  if (in.job.restarts < j->job.restarts) return;  // of an earlier attempt
  const bool between_attempts = acts_before_start(j->state) || (j->state == JobState::kRestart && !j->runs);
  Case c = case_of(in.diagnosis, options.origins, in.also);
  if (between_attempts) {  // the first verdict stays; after a restart it is this one
    const bool is_first = j->lead_is_restored && !in.withdrawn && j->lead && j->lead->root == c.root;
    if (!is_first) return;
    j->lead = std::move(c);
    j->lead_is_restored = false;
    return assess(*j);
  }
  if (c.newest_ns != kNoTime && j->attempt.begin_ns != kNoTime &&
      c.newest_ns + kClocksDiffer < j->attempt.begin_ns)
    return note(NoteKind::kRecord, j,
                fmt::format("{}: older than the attempt, so it decides nothing", c.title));
  if (in.withdrawn) {
    for (const std::string& host : c.hosts)
      if (machines.find(host) != nullptr) machines.refuted(host, now);
    note(NoteKind::kRecord, j, fmt::format("{}: withdrawn", c.title));
    if (j->lead && j->lead->root == c.root) j->lead.reset();
    return assess(*j);
  }
  c.measured = in.measured;
  c.step_share = in.step_share;
  const bool is_new = !j->lead || j->lead->root != c.root;
  j->lead = std::move(c);
  if (j->lead->symptom == Symptom::kHang && in.alive) j->stalled = true;
  assess(*j);
  if (j->attempt.detected_ns == kNoTime || is_new) j->attempt.detected_ns = now;
  j->alive = in.alive;
  if (in.alive && j->declined_root == j->lead->root) return;  // a person declined it for this attempt
  if (in.alive) {
    apply(*j, JobEvidence::kVerdictAlive);
    return advise(*j);
  }
  const Machine machine = j->treatment.machine;
  const bool at_once = machine == Machine::kIsolate || machine == Machine::kDevice || in.settled;
  apply(*j, at_once ? JobEvidence::kVerdictEnded : JobEvidence::kFailed);
}

void Controller::Impl::take(const SuspectsSeen& in) {
  ControlledJob* j = find(in.job);
  if (j == nullptr || in.job.restarts < j->job.restarts) return;
  const std::string root = "suspects: " + in.why;
  for (const std::string& host : in.hosts) machines.suspected(host, "", root, now);
  j->stalled = j->stalled || in.stalled;
  if (in.stalled && j->declined_root == "") return;  // a person declined to end it
  apply(*j, JobEvidence::kSuspects);
}

void Controller::Impl::take(const ProgressSeen& in) {
  ControlledJob* j = find(in.job);
  if (j == nullptr || in.job.restarts < j->job.restarts) return;
  AttemptRecord& a = j->attempt;
  const bool advanced = !j->latest || in.iteration > *j->latest;
  const bool beyond = !j->best || in.iteration > *j->best;
  if (advanced) {
    if (a.first_step_ns == kNoTime) {
      a.first_step_ns = now;
      if (a.begin_ns != kNoTime) j->start_took_ns = now - a.begin_ns;
      if (!a.progress_from) a.progress_from = in.iteration;
    }
    j->latest = in.iteration;
    a.progress_to = in.iteration;
    a.last_progress_ns = now;
  }
  if (in.saved) {
    a.saved_ns = now;
    save_attempt(*j);
  }
  if (beyond) {
    j->best = in.iteration;
    j->made_progress = true;
  }
  // A device that is gone stays gone, although a last line of progress arrives.
  const bool stops_for_fault = j->state == JobState::kStop && !j->stalled;
  if (advanced && j->state == JobState::kVerify && !beyond)
    j->limit_ns = now + limit_of(JobState::kVerify, options.bounds, j->start_took_ns);
  const bool is_late = a.end_ns != kNoTime;  // a line of an attempt that has ended
  if (beyond && !stops_for_fault && !is_late) {
    j->stalled = false;
    if (j->state != JobState::kRun) apply(*j, JobEvidence::kProgress);
  }
  if (in.saved && is_slow_host(*j) && j->state == JobState::kRun && pays_to_restart(*j)) {
    j->at_save = true;
    apply(*j, JobEvidence::kVerdictAlive);
  }
}

void Controller::Impl::take(const AttemptEnded& in) {
  ControlledJob* j = find(in.job);
  if (j == nullptr || in.job.restarts < j->job.restarts) return;
  const bool by_person = in.end == JobEnd::kCancelled || in.end == JobEnd::kCompleted;
  const bool known = j->attempt.end_ns != kNoTime && in.job.restarts <= j->job.restarts;
  if (known && !by_person) return;  // the end of the attempt that was decided on
  j->alive = j->runs = false;
  if (j->attempt.end_ns == kNoTime) j->attempt.end_ns = now;
  j->attempt.exit = in.word;
  j->attempt.exit_code = in.exit_code;
  j->attempt.exit_reason = in.reason;
  save_attempt(*j);
  JobEvidence evidence = evidence_of(in.end);
  if (evidence == JobEvidence::kNodeFailed) {
    for (const std::string& host : in.failed_hosts) {
      hosts[host].out = true;
      machines.suspected(host, "", "scheduler: host failed", now);
    }
    const bool general = !j->lead || j->lead->fault == FaultClass::kUnknown ||
                         j->lead->fault == FaultClass::kNoCulprit || j->lead->hosts.empty();
    if (general && j->state != JobState::kStop && !in.failed_hosts.empty()) {
      j->lead = node_failure_of(in.failed_hosts);
      assess(*j);
    }
  }
  if (evidence == JobEvidence::kFailed && j->lead && !acts_before_start(j->state))
    evidence = JobEvidence::kVerdictEnded;  // the verdict came first
  apply(*j, evidence);
}

void Controller::Impl::take(const JobChanged& in) {
  ControlledJob* j = find(in.job);
  if (j == nullptr) return;
  if (in.kind == ForeignKind::kReleased) return note(NoteKind::kRecord, j, "released by " + in.by);
  apply(*j, in.kind == ForeignKind::kStarted ? JobEvidence::kStartedByOthers : JobEvidence::kHeldByOthers);
}

void Controller::Impl::take(const ActionResult& in) {
  const ActionRecord* record = actions.settle(in);
  if (record == nullptr)
    return note(NoteKind::kRecord, nullptr, fmt::format("action {}: a result that nothing waits for", in.op));
  const ActionOrder& order = record->order;
  guard.end(order.target, order.op);
  if (order.kind == OrderKind::kReturn) return settle_return(*record, in);
  ControlledJob* j = find(order.job);
  note(NoteKind::kResult, j,
       fmt::format("{} {}: {}{}{}", to_string(order.kind), order.target, to_string(record->state),
                   in.detail.empty() ? "" : ", ", in.detail),
       order);
  if (order.kind == OrderKind::kIsolate) settle_isolation(*record, in);
  if (j != nullptr) settle_job(*j, *record, in);
}

void Controller::Impl::settle_job(ControlledJob& j, const ActionRecord& record, const ActionResult& in) {
  const ActionOrder& order = record.order;
  const bool good = record.state == ActionState::kDone || record.state == ActionState::kSuperseded;
  if (order.kind == OrderKind::kRunAgain || order.kind == OrderKind::kVerify)
    for (const std::string& host : in.hosts)
      if (std::ranges::find(order.excluded, host) != order.excluded.end())
        note(NoteKind::kResult, &j, fmt::format("the job runs on {} although it was to be left out", host));
  if (order.kind == OrderKind::kRunAgain && good && j.state == JobState::kRestart) {
    if (j.attempt.end_ns != kNoTime) {
      begin_attempt(j, in.hosts);
      j.from_result = true;
    }
    j.alive = j.runs = true;
  }
  if (order.kind == OrderKind::kEndTasks && j.state == JobState::kStop) {
    // Hosts whose processes a kernel could not end: the host is at fault.
    if (!good)
      for (const std::string& host : in.hosts) {
        j.treatment.hosts.push_back(host);
        machines.suspected(host, "", "recover: processes do not end", now);
      }
    if (good) j.alive = false;
  }
  if (j.waits.erase(order.op) == 0) return;
  j.failed = j.failed || !good;
  if (j.waits.empty()) apply(j, j.failed ? JobEvidence::kActionsFailed : JobEvidence::kActionsDone);
}

void Controller::Impl::take(const Approval& in) {
  if (host_asks.contains(in.decision)) return answer_host_ask(in.decision, in.approved, in.by);
  if (asked.contains(in.decision)) return answer_advice(in.decision, in.approved, in.by);
  for (auto& [key, j] : jobs) {
    if (j.decision != in.decision || j.asks_until_ns == kNoTime) continue;
    j.asks_until_ns = kNoTime;
    note(NoteKind::kRecord, &j, fmt::format("{} by {}", in.approved ? "approved" : "declined", in.by));
    if (in.approved) j.approved_by = in.by.empty() ? "a person" : in.by;
    return apply(j, in.approved ? JobEvidence::kApproved : JobEvidence::kDeclined);
  }
  note(NoteKind::kRecord, nullptr,
       fmt::format("{} waits for no answer: unknown, answered or expired", in.decision));
}

void Controller::Impl::take(const AdviceSeen& in) {
  if (!note_outcome(in)) return;
  const ControlledJob* j = find(in.job);
  take(ProgressSeen{in.job, j->latest.value_or(std::max<int64_t>(in.step, 0)), true});
}

void Controller::Impl::take(const BreakerReset& in) {
  guard.reset(in.at_ns == kNoTime ? now : in.at_ns);
  note(NoteKind::kRecord, nullptr,
       fmt::format("the breaker was reset by {}; what was decided before isolates nothing", in.by));
}

void Controller::Impl::fire_limits() {
  if (pruned_ns == kNoTime || now - pruned_ns >= 24 * 3600 * kNsPerSecond) {
    actions.prune(now);
    machines.prune(now);
    pruned_ns = now;
  }
  std::vector<std::string> forgotten;
  for (auto& [key, j] : jobs) {
    if (j.asks_until_ns != kNoTime && now >= j.asks_until_ns) {
      j.asks_until_ns = kNoTime;
      apply(j, JobEvidence::kDeclined);
    }
    if (j.limit_ns == kNoTime || now < j.limit_ns) continue;
    if (j.state == JobState::kDone) {
      forgotten.push_back(key);
      continue;
    }
    if (j.state == JobState::kCheck) assess_checks(j);
    apply(j, JobEvidence::kLimit);
  }
  for (const std::string& key : forgotten) {
    std::erase_if(key_by_id, [&](const auto& one) { return one.second == key; });
    jobs.erase(key);
  }
  std::vector<std::string> expired;
  for (const auto& [decision, pending] : host_asks)
    if (now >= pending.until_ns) expired.push_back(decision);
  for (const std::string& decision : expired) answer_host_ask(decision, false, "the clock");
  end_late_advice();
}

}  // namespace culprit::recover
