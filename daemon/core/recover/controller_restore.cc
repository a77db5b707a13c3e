// Stored rows, and what follows for jobs and open actions: at the collector's restart, and of other members.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "core/recover/controller_impl.h"
#include "model/report.h"

namespace culprit::recover {
namespace {

constexpr TimeNs kRestoredJobs = 24 * 3600 * kNsPerSecond;  // decide() counts the attempts of a day
// A decision that is older and has no open action is not continued: the real state speaks.
constexpr TimeNs kContinueWithin = 3600 * kNsPerSecond;

// "d-0012" gives 12; 0 for anything else.
uint64_t number_of(std::string_view decision) {
  uint64_t number = 0;
  if (!decision.starts_with("d-")) return 0;
  decision.remove_prefix(2);
  const auto [end, error] = std::from_chars(decision.data(), decision.data() + decision.size(), number);
  return error == std::errc() && end == decision.data() + decision.size() ? number : 0;
}

}  // namespace

bool Controller::load(ActionRecord record) {
  impl_->decisions = std::max(impl_->decisions, number_of(record.order.decision));
  return impl_->actions.load(std::move(record));
}

bool Controller::load(AttemptRecord record) {
  if (record.attempt == 0 || record.job.id.empty()) return false;
  impl_->decisions = std::max(impl_->decisions, number_of(record.decision));
  impl_->loaded.push_back(std::move(record));
  return true;
}

void Controller::lost_ledger(TimeNs now) {
  constexpr int64_t k2020 = 1'577'836'800;
  const int64_t seconds = now / kNsPerSecond - k2020;
  impl_->decisions = std::max(impl_->decisions, static_cast<uint64_t>(std::max<int64_t>(seconds, 0)));
}

void Controller::load(MachineRecord record) { impl_->machines.load(std::move(record)); }

void Controller::Impl::take(const Restored& in) {
  restore_jobs();
  const std::vector<ActionOrder> again = actions.recover(in.read, now);
  restore_guard();
  for (const ActionOrder& order : again) {
    if (order.kind == OrderKind::kIsolate || order.kind == OrderKind::kReturn)
      guard.begin(order.target, order.op);
    note(NoteKind::kRecord, nullptr, "given once more after a restart of the collector", order);
    out.emplace_back(order);
  }
  for (auto& [key, j] : jobs)
    if (!restore_decision(j, again)) restore_wait(j);
  note(NoteKind::kRecord, nullptr,
       fmt::format("restored {} jobs and {} actions", jobs.size(), actions.size()));
}

// The breaker's windows, vetoes and probation from the ledger, in order of time.
void Controller::Impl::restore_guard() {
  std::vector<std::pair<TimeNs, const ActionRecord*>> isolations;
  for (const ActionRecord* record : actions.all())
    if (record->order.kind == OrderKind::kIsolate) isolations.emplace_back(record->reserved_ns, record);
  std::ranges::stable_sort(isolations, {}, &std::pair<TimeNs, const ActionRecord*>::first);
  for (const auto& [at, record] : isolations) {
    count_isolation(*record);
    const MachineRecord* m = machines.find(record->order.target);
    const bool unstored = m == nullptr || m->op != record->order.op;
    if (record->state == ActionState::kDone && unstored)
      machines.isolated(record->order.target, record->order.op, record->root, at);
  }
}

void Controller::Impl::count_isolation(const ActionRecord& record) {
  const std::string& host = record.order.target;
  switch (record.state) {
    case ActionState::kDone:
    case ActionState::kReserved:
    case ActionState::kAmbiguous:
      return guard.isolated(host, record.reserved_ns);
    case ActionState::kUndone:
      guard.would_isolate(host, record.reserved_ns);
      guard.returned(host, record.settled_ns);
      if (!record.undone_by.empty()) guard.vetoed(host, record.root, record.settled_ns);
      return;
    default:
      return;
  }
}

// ---- other members

void Controller::Impl::take(const LedgerSeen& in) {
  for (const ActionRecord& row : in.isolations) {
    if (!elsewhere.contains(row.order.op) && actions.find(row.order.op) != nullptr) continue;  // ours
    const auto [known, is_new] = elsewhere.emplace(row.order.op, row.state);
    const ActionState before = std::exchange(known->second, row.state);
    const bool was_out =
        before == ActionState::kReserved || before == ActionState::kDone || before == ActionState::kAmbiguous;
    if (is_new) {
      count_isolation(row);
    } else if (before == row.state) {
      continue;
    } else if (row.state == ActionState::kUndone) {
      guard.returned(row.order.target, row.settled_ns);
      if (!row.undone_by.empty()) guard.vetoed(row.order.target, row.root, row.settled_ns);
    } else if (was_out && row.state != ActionState::kDone && row.state != ActionState::kAmbiguous) {
      guard.not_isolated(row.order.target);
    }
  }
  for (const MachineRecord& row : in.machines) machines.learn(row);
}

// What this member knew of the job is older than the rows.
void Controller::Impl::take(const JobAdopted& in) {
  const std::string key = key_of(in.job);
  if (const auto old = jobs.find(key); old != jobs.end()) {
    if (old->second.state != JobState::kDone) apply(old->second, JobEvidence::kCancelled);
    jobs.erase(old);
  }
  LedgerSeen isolated;
  std::ranges::copy_if(in.actions, std::back_inserter(isolated.isolations),
                       [](const ActionRecord& row) { return row.order.kind == OrderKind::kIsolate; });
  take(isolated);
  for (const ActionRecord& row : in.actions) actions.learn(row);
  std::vector<AttemptRecord> attempts = in.attempts;
  std::ranges::stable_sort(attempts, {}, &AttemptRecord::attempt);
  for (const AttemptRecord& one : attempts) restore_attempt(one);
  const auto job = jobs.find(key);
  if (job == jobs.end()) return;
  ControlledJob& j = job->second;
  if (!restore_decision(j, {})) restore_wait(j);
  note(NoteKind::kRecord, &j,
       fmt::format("goes on from attempt {} of another member{}{}", j.attempt.attempt,
                   j.decision.empty() ? "" : ", decision ", j.decision));
}

void Controller::Impl::restore_jobs() {
  std::ranges::stable_sort(loaded, {}, &AttemptRecord::attempt);
  for (const AttemptRecord& record : loaded) {
    const TimeNs last = record.end_ns != kNoTime ? record.end_ns : record.last_progress_ns;
    if (record.end_ns != kNoTime && now - last > kRestoredJobs) continue;
    restore_attempt(record);
  }
  loaded.clear();
}

void Controller::Impl::restore_attempt(const AttemptRecord& record) {
  ControlledJob& j = jobs[key_of(record.job)];
  j.key = key_of(record.job);
  j.job = record.job;
  key_by_id[record.job.scheduler + "/" + record.job.id] = j.key;
  const TimeNs last_ns = record.end_ns != kNoTime ? record.end_ns : record.begin_ns;
  const bool beyond = record.progress_to && (!j.best || *record.progress_to > *j.best);
  if (beyond) j.best = record.progress_to;
  j.latest = record.progress_to;
  j.made_progress = beyond;
  if (record.first_step_ns != kNoTime && record.begin_ns != kNoTime)
    j.start_took_ns = record.first_step_ns - record.begin_ns;
  j.attempt = record;
  j.declined_root = record.declined;
  for (const std::string& host : record.excluded) j.excluded[host] = last_ns;
  j.decision = record.decision;
  j.since_ns = now;
  j.counted = record.end_ns != kNoTime && !record.decision.empty();
  if (j.counted) {
    Failure f;
    f.root = record.root;
    f.preempted = record.cause == kPreempted;
    f.advice.sure = true;  // a stop stays a stop
    if (!record.excluded.empty()) f.advice.hosts = record.excluded;
    f.advice.kind = from_word<Restart>(record.restart).value_or(Restart::kUnknown);
    f.ran_on = record.hosts;
    f.progress = beyond ? Progress::kMade : j.best ? Progress::kNone : Progress::kUnknown;
    f.iteration = record.progress_to;
    f.begin_ns = record.begin_ns;
    f.end_ns = record.end_ns;
    j.failure = f;
    j.ledger.add(f);
  }
  j.state = record.closed ? JobState::kDone : record.end_ns == kNoTime ? JobState::kRun : JobState::kHeld;
  j.runs = j.alive = record.end_ns == kNoTime;
  j.limit_ns = j.state == JobState::kHeld   ? now + options.bounds.remind_ns
               : j.state == JobState::kDone ? now + kRestoredJobs
                                            : kNoTime;
}

// The case behind a decision, as far as its action has it: enough to leave its hosts out, too little to
// isolate one.
void Controller::Impl::restore_case(ControlledJob& j, const ActionRecord& record) {
  Case c;
  c.root = record.root;
  c.code = record.order.code;
  c.title = record.order.reason;
  c.confidence = 1;
  c.hosts = record.order.excluded;
  c.restart.kind = c.hosts.empty() ? Restart::kSame : Restart::kElsewhere;
  c.restart.hosts = c.hosts;
  j.treatment = {};
  j.treatment.restart = c.restart;
  j.treatment.why = "continued after a restart of the collector";
  if (!c.hosts.empty()) j.treatment.machine = Machine::kExclude;
  j.treatment.hosts = c.hosts;
  j.lead = std::move(c);
  j.lead_is_restored = true;
}

// Continues the newest decision of the job where the ledger left it.
bool Controller::Impl::restore_decision(ControlledJob& j, const std::vector<ActionOrder>& again) {
  const ActionRecord* newest = nullptr;
  for (const ActionRecord* record : actions.of_job(j.job))
    if (record->order.kind != OrderKind::kVerify && record->reserved_ns != kNoTime &&
        (newest == nullptr || record->reserved_ns >= newest->reserved_ns))
      newest = record;
  if (newest == nullptr || now - newest->reserved_ns > kContinueWithin) return false;
  if (newest->attempt < j.attempt.attempt || j.attempt.closed) return false;  // a later attempt, or none
  if (newest->state == ActionState::kSuperseded) return false;                // another actor took over
  j.decision = newest->order.decision;
  j.decided_ns = newest->reserved_ns;
  j.decision_attempt = newest->attempt;
  j.decision_root = newest->root;
  j.open = true;
  for (const std::string& host : newest->order.excluded) j.excluded[host] = newest->reserved_ns;
  if (newest->by != "culprit") j.approved_by = newest->by;
  j.waits.clear();
  j.failed = false;
  for (const ActionRecord* record : actions.of(j.decision)) {
    const OrderKind kind = record->order.kind;
    if (record->order.kind == OrderKind::kIsolate) j.excluded[record->order.target] = record->reserved_ns;
    const bool sent = std::ranges::any_of(again, [&](const auto& o) { return o.op == record->order.op; });
    if (kind == newest->order.kind && sent) j.waits.insert(record->order.op);
    j.failed = j.failed || (kind == newest->order.kind && !sent && record->state != ActionState::kDone);
  }
  restore_case(j, *newest);
  j.next.again = true;  // decided before: an attempt follows
  j.next.hosts.clear();
  j.next.wait_ns = 0;
  j.state = newest->order.kind == OrderKind::kEndTasks  ? JobState::kStop
            : newest->order.kind == OrderKind::kIsolate ? JobState::kIsolate
                                                        : JobState::kRestart;
  j.since_ns = now;
  j.limit_ns = now + limit_of(j.state, options.bounds, j.start_took_ns);
  j.counted = j.counted || j.state != JobState::kStop;
  j.why.push_back(fmt::format("{} {}: continued {} after a restart of the collector", format_time(now),
                              to_string(j.state), j.decision));
  if (j.waits.empty()) apply(j, j.failed ? JobEvidence::kActionsFailed : JobEvidence::kActionsDone);
  return true;
}

// An ended attempt without an action: its verdict is awaited again, or its wait goes on.
void Controller::Impl::restore_wait(ControlledJob& j) {
  const AttemptRecord& a = j.attempt;
  if (a.closed || a.end_ns == kNoTime || now - a.end_ns > kContinueWithin) return;
  if (a.decision.empty()) {
    j.state = JobState::kSuspect;
    j.limit_ns = now + options.bounds.verdict_ns;
    return;
  }
  for (const ActionRecord* record : actions.of(a.decision))
    if (record->order.kind == OrderKind::kRunAgain || record->state == ActionState::kSuperseded)
      return;  // given, whatever came of it, or another actor took over
  ActionRecord known;
  known.root = a.root;
  known.order.reason = a.root.empty() ? "the cause is not known" : a.root;
  known.order.excluded = a.excluded;
  restore_case(j, known);
  j.decided_ns = a.decided_ns;
  j.decision_attempt = a.attempt;
  j.decision_root = a.root;
  j.open = true;
  j.next = decide(j.ledger, j.failure, means_of(j), limits_of(j));
  if (guard.permit() == Permit::kGranted) apply(j, JobEvidence::kApproved);
}

}  // namespace culprit::recover
