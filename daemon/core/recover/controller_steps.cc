// One piece of evidence about one job: facts, the table's transition, and what it does.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/recover/controller_impl.h"
#include "model/restart.h"

namespace culprit::recover {
namespace {

constexpr size_t kExplained = 64;     // sentences per job
constexpr size_t kReasonBytes = 160;  // of a title in an order: schedulers show less
constexpr size_t kSlowHosts = 64;     // remembered of a job
constexpr size_t kDoubtfulHosts = 1000;
constexpr double kAlignConfidence = 0.9;  // another library on one host also gives other bits
constexpr size_t kChainOfSteps = 16;  // transitions without an input between: more is a fault of the table

bool isolates_machine(const ControlledJob& j) {
  switch (j.treatment.machine) {
    case Machine::kIsolate:
    case Machine::kGroup:
    case Machine::kDevice:
      return true;
    case Machine::kIsolateLater:
      return j.at_save || !j.alive;  // an ended attempt has no later checkpoint
    default:
      return false;
  }
}

// Hosts that this decision leaves out, in doubt or not.
std::set<std::string> hosts_of_decision(const ControlledJob& j) {
  std::set<std::string> out(j.treatment.restart.hosts.begin(), j.treatment.restart.hosts.end());
  const Machine machine = j.treatment.machine;
  if (machine != Machine::kNone && machine != Machine::kSuspect && machine != Machine::kCheck)
    out.insert(j.treatment.hosts.begin(), j.treatment.hosts.end());
  out.insert(j.next.hosts.begin(), j.next.hosts.end());
  return out;
}

// The fault keeps the attempt from going on, although processes are alive.
bool is_fatal(const ControlledJob& j) {
  if (!j.lead) return false;
  const Machine machine = j.treatment.machine;
  if (is_slow_host(j)) return j.at_save;
  // A claim that a user could have written ends no job that makes progress: a lost device would stop it.
  if (j.lead->fault == FaultClass::kDevice) return j.stalled || j.lead->authors.independent();
  return j.lead->symptom == Symptom::kHang || machine == Machine::kGroup || machine == Machine::kDevice;
}

// A title may quote a log: without control characters, and short.
std::string reason_of(const Case& c, const Treatment& t) {
  std::string text = shorten(to_terminal(c.title), kReasonBytes);
  if (t.machine == Machine::kDevice && !t.devices.empty()) text += " on " + shown_list(t.devices);
  return text;
}

double chance_of(std::string_view text) { return static_cast<double>(hash64(text) % 2001) / 1000.0 - 1.0; }

bool ends_attempt(JobState state, JobEvidence e, bool alive) {
  using enum JobState;
  switch (e) {
    case JobEvidence::kVerdictEnded:
    case JobEvidence::kNodeFailed:
    case JobEvidence::kTakenAway:
      return state == kRun || state == kSuspect || state == kStop || state == kRestart || state == kVerify;
    case JobEvidence::kLimit:
      return state == kStop || ((state == kSuspect || state == kVerify) && !alive);
    case JobEvidence::kActionsDone:
    case JobEvidence::kActionsFailed:
    case JobEvidence::kFailed:
      return state == kStop;
    default:
      return false;
  }
}

}  // namespace

bool is_slow_host(const ControlledJob& j) {
  const Machine machine = j.treatment.machine;
  return j.lead && j.lead->fault == FaultClass::kSlowHost &&
         (machine == Machine::kIsolateLater || machine == Machine::kExclude);
}

void JobSteps::note(NoteKind kind, const ControlledJob* j, std::string text,
                    std::optional<ActionOrder> order) {
  Note out_note;
  out_note.kind = kind;
  if (j != nullptr) {
    out_note.job = j->key;
    out_note.decision = j->decision;
  }
  if (order) out_note.decision = order->decision;
  out_note.text = std::move(text);
  out_note.order = std::move(order);
  out.emplace_back(std::move(out_note));
}

std::string JobSteps::new_decision() { return fmt::format("d-{:04}", ++decisions); }

// ---- judging

void JobSteps::assess(ControlledJob& j) {
  if (!j.lead) {
    j.treatment = {};
    return;
  }
  const Case& c = *j.lead;
  const Policy& p = options.policy;
  Past past;
  past.cluster_hosts = guard.cluster_hosts();
  past.spares = j.means && j.means->eligible;
  past.lacks_hosts = !can_spare(j, c.hosts);
  past.may_check = !guard.check(j.partition);
  for (const std::string& host : c.hosts) {
    past.suspected_lately =
        std::max(past.suspected_lately, machines.suspicions_within(host, c.root, p.network_window_ns, now));
    past.isolated_lately =
        std::max(past.isolated_lately, machines.isolations_within(host, p.machine_window_ns, now));
    past.cause_hosts =
        std::max(past.cause_hosts, machines.hosts_of_cause(c.root, host, p.cause_window_ns, now));
    past.probation = past.probation || guard.on_probation(host, now);
  }
  const Ledger::Entry* entry = j.counted ? j.ledger.before(c.root) : &j.ledger.now(c.root);
  j.treatment = treat(c, past, entry == nullptr ? 0 : entry->times, p);
  // Remembered, since the next failure has another verdict.
  if (is_slow_host(j))
    for (const std::string& host : c.hosts)
      if (j.slow.size() < kSlowHosts) j.slow.insert(host);
}

// What the checks of the job's hosts found.
void JobSteps::note_checks(const ControlledJob& j, const std::vector<std::string>& failed) {
  std::string unknown;
  const auto none =
      std::ranges::count_if(j.checks, [](const auto& one) { return one.second == CheckAnswer::kNoAnswer; });
  if (none > 0)
    unknown = fmt::format("; {} without an answer, which is unknown{}{}", counted(none, "host"),
                          j.unknown_why.empty() ? "" : ": ", j.unknown_why);
  const bool align = j.check_kind == CheckKind::kAlign;
  if (!failed.empty() && align)
    return note(NoteKind::kRecord, &j,
                fmt::format("an equal step gave other bits on {} than on most others{}", shown_list(failed),
                            unknown));
  if (!failed.empty()) return;
  if (!align) return note(NoteKind::kRecord, &j, "no node check failed" + unknown);
  const bool agree = none * 2 < static_cast<std::ptrdiff_t>(j.checks.size());
  note(NoteKind::kRecord, &j,
       (agree ? "an equal step gave the same bits on the hosts of the job"
              : "open: whether a host computes wrong bits") +
           unknown);
}

// Hosts that failed their check are at fault. No answer is unknown: another job, or any process of a user,
// may be in its way.
void JobSteps::assess_checks(ControlledJob& j) {
  std::vector<std::string> failed;
  for (const auto& [host, answer] : j.checks)
    if (answer == CheckAnswer::kFailed) failed.push_back(host);
  j.treatment.check_first = j.treatment.align = false;
  note_checks(j, failed);
  if (failed.empty()) return;
  const bool align = j.check_kind == CheckKind::kAlign;
  Case c = j.lead.value_or(Case{});
  c.fault = align ? FaultClass::kSilentCorruption : FaultClass::kDevice;
  c.hosts = c.confirmed = failed;
  if (align) {
    c.root = kAlignRoot;
    c.code = "ALIGN";
    c.title = "Device computes other bits than its peers";
    c.devices.clear();
    c.restart.devices.clear();
    c.measured = options.policy.corruption_audits;  // the step was repeated, and has peers
  }
  c.authors.plugin = true;  // the agent's own check; no user of the host writes it
  c.confidence = align ? kAlignConfidence : 1;
  c.newest_ns = now;
  if (c.code.empty()) c.code = "NODE-CHECK";
  j.lead = std::move(c);
  j.treatment = treat(*j.lead, {}, 0, options.policy);
  j.treatment.why = fmt::format("{} on {}", align ? "an equal step gave other bits" : "the node check failed",
                                shown_list(failed));
  j.failure.advice = j.treatment.restart;
  j.next = decide(j.ledger, j.failure, means_of(j), limits_of(j));
}

Failure JobSteps::failure_of(const ControlledJob& j, bool preempted) const {
  Failure f;
  if (j.lead) {
    f.root = j.lead->root;
    f.advice = j.treatment.restart;
    if (!j.lead->hosts.empty()) f.first_to_fail = j.lead->hosts.front();
  }
  f.hang = j.stalled || (j.lead && j.lead->symptom == Symptom::kHang);
  f.preempted = preempted;
  f.ran_on = j.attempt.hosts;
  f.progress = j.made_progress ? Progress::kMade : j.best ? Progress::kNone : Progress::kUnknown;
  f.iteration = j.latest;
  f.begin_ns = j.attempt.begin_ns;
  f.end_ns = now;
  return f;
}

// A job on thousands of hosts meets as many failures in half an hour that are not its own.
Limits JobSteps::limits_of(const ControlledJob& j) const {
  Limits limits = options.limits;
  const auto hosts_of_job = static_cast<uint32_t>(j.attempt.hosts.size());
  limits.storm = std::max(limits.storm, hosts_of_job / std::max(uint32_t{1}, options.storm_hosts));
  return limits;
}

Means JobSteps::means_of(const ControlledJob& j) const {
  Means out_means;
  out_means.may_requeue = true;
  if (j.means) out_means = j.means->means;
  out_means.chance = chance_of(fmt::format("{} {}", j.key, j.attempt.attempt));
  return out_means;
}

void JobSteps::count_failure(ControlledJob& j, bool preempted) {
  if (j.counted) return;
  j.failure = failure_of(j, preempted);
  j.ledger.add(j.failure);
  j.counted = true;
  j.next = decide(j.ledger, j.failure, means_of(j), limits_of(j));
}

// The decision that would follow if the attempt ended now.
Decision JobSteps::preview(const ControlledJob& j) const {
  if (j.counted) return j.next;
  Ledger ledger = j.ledger;
  const Failure failure = failure_of(j, false);
  ledger.add(failure);
  return decide(ledger, failure, means_of(j), limits_of(j));
}

// The hosts that may be isolated now. `tell`: each refusal is noted, once per decision.
std::vector<std::string> JobSteps::isolatable(ControlledJob& j, bool tell) {
  std::vector<std::string> result;
  if (!j.lead || !isolates_machine(j)) return result;
  for (const std::string& host : j.treatment.hosts) {
    if (const auto seen = hosts.find(host); seen != hosts.end() && seen->second.out) continue;
    if (const MachineRecord* m = machines.find(host); m != nullptr && !m->op.empty()) continue;
    const auto known = hosts.find(host);
    IsolationWish wish;
    wish.host = host;
    wish.partition =
        known != hosts.end() && !known->second.partition.empty() ? known->second.partition : j.partition;
    wish.why = &*j.lead;
    wish.decided_ns = j.open ? j.decided_ns : now;
    wish.group = j.treatment.machine == Machine::kGroup;
    wish.group_hosts = static_cast<uint32_t>(j.treatment.hosts.size());
    wish.confidence_needed = options.policy.isolate_confidence;
    if (const auto refusal = guard.isolate(wish, now)) {
      if (tell && j.refused.insert(host).second)
        note(NoteKind::kRefused, &j,
             fmt::format("{} is not isolated but left out for this job: {}", host, refusal->why));
      continue;
    }
    result.push_back(host);
  }
  return result;
}

Facts JobSteps::facts_of(ControlledJob& j) {
  Facts f;
  const Decision next_attempt = preview(j);
  if (j.lead) f.symptom = j.lead->symptom;
  f.stalled = j.stalled;
  f.ends_job = is_fatal(j);
  f.sure = !j.lead || j.lead->confidence >= options.policy.stop_confidence;
  f.isolates = !isolatable(j, false).empty();
  f.checks = j.treatment.check_first && !guard.check(j.partition);
  f.again = next_attempt.again;
  if (j.means) {
    const bool no_checkpoint = next_attempt.older && j.means->checkpoint && !*j.means->checkpoint;
    f.placeable = !no_checkpoint;
    f.pending = j.means->pending;
    f.frees = f.pending && frees_hosts(j);
  }
  f.waiting = j.wait_until_ns != kNoTime && now < j.wait_until_ns;
  f.shows_progress = j.best.has_value();
  f.alive = j.alive;
  f.runs = j.runs;
  f.patient = j.pending_since_ns == kNoTime || now - j.pending_since_ns < options.bounds.pending_ns;
  f.may_restart = !guard.restart(j.partition);
  f.breaker_open = guard.breaker(now).has_value();
  f.permit = guard.permit() == Permit::kAsk && !j.approved_by.empty() ? Permit::kGranted : guard.permit();
  return f;
}

// ---- the transition

void JobSteps::apply(ControlledJob& j, JobEvidence first) {
  std::deque<JobEvidence> more = {first};
  for (size_t steps = 0; !more.empty(); ++steps) {
    CULPRIT_CHECK(steps < kChainOfSteps);
    const JobEvidence evidence = more.front();
    more.pop_front();
    const bool unseen_attempt = j.counted && (j.state == JobState::kRestart || j.state == JobState::kVerify);
    const bool ends = ends_attempt(j.state, evidence, j.alive);
    if (unseen_attempt && (ends || evidence == JobEvidence::kFailed))
      begin_attempt(j, std::vector<std::string>(j.attempt.hosts));
    if (ends) {
      j.alive = j.runs = false;
      count_failure(j, evidence == JobEvidence::kTakenAway && j.state != JobState::kStop);
    }
    const Facts facts = facts_of(j);
    const Transition t = next(j.state, evidence, facts);
    const bool is_new = t.next != j.state || t.what.bits != 0;
    if (is_new) {
      std::string line = fmt::format("{} {}", format_time(now), to_string(j.state));
      if (t.next != j.state) line += fmt::format(" -> {}", to_string(t.next));
      line += fmt::format(" on {}: {}", to_string(evidence), t.why);
      if (j.why.empty() || !j.why.back().ends_with(line.substr(line.find(' ', 12)))) j.why.push_back(line);
      if (j.why.size() > kExplained) j.why.pop_front();
    }
    if (t.what.has(Do::kNote) && !(t.next == JobState::kHeld && j.state != t.next))
      note(NoteKind::kRecord, &j, std::string(t.why));
    if (evidence == JobEvidence::kLimit && t.next != j.state) give_up_waiting(j);
    carry_out(j, t.what, evidence);
    if (t.next != j.state) {
      if (t.next == JobState::kHeld)
        note(NoteKind::kHeld, &j,
             facts.again || j.next.why.empty() ? std::string(t.why)
                                               : fmt::format("{}: {}", t.why, j.next.why));
      enter(j, t.next, more);
    } else if (evidence == JobEvidence::kLimit) {
      j.limit_ns = j.limit_ns == kNoTime ? kNoTime : now + options.bounds.remind_ns;
      if (j.state == JobState::kPlace) j.limit_ns = j.wait_until_ns;
    }
    if (evidence == JobEvidence::kFailed && j.state == JobState::kSuspect)
      j.limit_ns = std::min(j.limit_ns, now + options.bounds.verdict_ns);
  }
}

// No answer in time: ambiguous, so it counts and is not repeated.
void JobSteps::give_up_waiting(ControlledJob& j) {
  for (const std::string& op : j.waits) {
    ActionResult none;
    none.op = op;
    none.state = ActionState::kAmbiguous;
    none.detail = "no answer in time";
    none.at_ns = now;
    if (const ActionRecord* record = actions.settle(none)) guard.end(record->order.target, op);
  }
  j.waits.clear();
}

void JobSteps::enter(ControlledJob& j, JobState state, std::deque<JobEvidence>& more) {
  j.state = state;
  j.since_ns = now;
  const TimeNs limit = limit_of(state, options.bounds, j.start_took_ns);
  j.limit_ns = limit == kNoTime ? kNoTime : now + limit;
  j.pending_since_ns = state == JobState::kRestart ? now : kNoTime;
  switch (state) {
    case JobState::kStop:
    case JobState::kIsolate:
    case JobState::kRestart:
      // Nothing was given: all was refused, or reserved before and so never given twice.
      if (j.waits.empty())
        more.push_back(state == JobState::kIsolate && !j.failed ? JobEvidence::kActionsDone
                                                                : JobEvidence::kActionsFailed);
      break;
    case JobState::kCheck:
      if (j.checks_wait.empty()) more.push_back(JobEvidence::kChecked);
      break;
    case JobState::kPlace:
      j.wait_until_ns = now + j.next.wait_ns;
      j.limit_ns = j.wait_until_ns;
      if (j.next.wait_ns <= 0) more.push_back(JobEvidence::kLimit);
      break;
    case JobState::kRun:
      j.approved_by.clear();
      break;
    case JobState::kDone:
      j.limit_ns = now + 24 * 3600 * kNsPerSecond;  // then forgotten
      j.attempt.closed = true;
      save_attempt(j);
      break;
    case JobState::kSuspect:
    case JobState::kVerify:
    case JobState::kHeld:
      break;
  }
}

void JobSteps::carry_out(ControlledJob& j, DoSet what, JobEvidence evidence) {
  if (what.has(Do::kRemember) && j.lead)
    for (const std::string& host : j.lead->hosts) machines.suspected(host, "", j.lead->root, now);
  if (what.has(Do::kAdvise) && j.lead)
    note(NoteKind::kAdvice, &j, fmt::format("{}: {}", j.lead->title, sentence(j.treatment.restart)));
  if (what.has(Do::kDecide)) open_decision(j, what);
  if (what.has(Do::kEndAttempt)) end_attempt(j);
  j.failed = false;
  if (what.has(Do::kEndTasks)) {
    j.waits.clear();
    emit(j, OrderKind::kEndTasks, j.job.id, "the attempt still runs");
  }
  if (what.has(Do::kCheckHosts)) check_hosts(j);
  if (what.has(Do::kExclude) || what.has(Do::kIsolateHosts)) exclude_hosts(j);
  if (what.has(Do::kIsolateHosts)) isolate_hosts(j);
  if (what.has(Do::kExclude) || what.has(Do::kIsolateHosts)) check_doubtful(j);
  if (what.has(Do::kAskAgain)) ask_again(j);
  if (what.has(Do::kRunAgain)) {
    j.waits.clear();
    emit(j, OrderKind::kRunAgain, j.job.id, "no attempt of the job runs, and no other actor holds it");
  }
  if (what.has(Do::kVerify)) emit(j, OrderKind::kVerify, j.job.id, "");
  if (what.has(Do::kGood)) {
    note(NoteKind::kResult, &j, "the attempt is good");
    if (j.open && j.lead && !j.excluded.empty())
      for (const std::string& host : j.treatment.hosts)
        if (j.excluded.contains(host)) machines.confirmed(host, now);
    j.open = false;
    j.lead.reset();
    assess(j);
  }
  if (what.has(Do::kAbandon)) {
    close_decision(j, ActionState::kSuperseded, fmt::format("superseded on {}", to_string(evidence)));
    if (evidence == JobEvidence::kDeclined) {
      j.declined_root = j.attempt.declined = j.decision_root;
      save_attempt(j);
    }
  }
  if (what.has(Do::kRemind))
    note(NoteKind::kReminder, &j,
         fmt::format("{} since {}: {}", to_string(j.state), format_time(j.since_ns),
                     j.state == JobState::kRestart && j.means && !j.means->pending_reason.empty()
                         ? j.means->pending_reason
                         : "the job does not run"));
}

void JobSteps::end_attempt(ControlledJob& j) {
  AttemptRecord& a = j.attempt;
  if (a.end_ns == kNoTime) a.end_ns = now;
  if (j.lead) {
    a.root = j.lead->root;
    a.cause = to_string(j.lead->fault);
  }
  if (j.failure.preempted) a.cause = kPreempted;
  a.restart = to_string(j.failure.advice.kind);
  a.decision = j.decision;
  if (a.detected_ns == kNoTime) a.detected_ns = now;
  a.decided_ns = j.decided_ns;
  save_attempt(j);
}

// ---- decisions and orders

std::string JobSteps::decided_sentence(const ControlledJob& j) const {
  const Decision next_attempt = preview(j);
  const bool aligns = j.treatment.align && !guard.check(j.partition);
  std::string text = j.lead ? j.lead->title : j.stalled ? "no progress" : "no verdict";
  if (j.lead && !j.lead->hosts.empty()) text += fmt::format(" on {}", shown_list(j.lead->hosts));
  text += fmt::format(" (confidence {:.2f})", j.lead ? j.lead->confidence : 0.0);
  if (j.treatment.machine != Machine::kNone)
    text += fmt::format("; machine: {}", to_string(j.treatment.machine));
  if (!j.treatment.why.empty()) text += ", " + j.treatment.why;
  if (!j.treatment.not_isolated.empty()) text += "; not isolated: " + j.treatment.not_isolated;
  if (aligns) text += "; first an equal step on each host, to find one with wrong bits";
  if (j.treatment.probably_innocent > 0)
    text += fmt::format("; {} probably innocent", counted(j.treatment.probably_innocent, "host"));
  text += next_attempt.again ? "; the job runs again " : "; the job does not run again: ";
  return text + next_attempt.why;
}

void JobSteps::open_decision(ControlledJob& j, DoSet what) {
  const std::string root = j.lead ? j.lead->root : std::string();
  if (j.open && j.decision_attempt == j.attempt.attempt && j.decision_root == root) {
    if (!what.has(Do::kAsk) || j.asks_until_ns != kNoTime) return;
  } else {
    if (j.open) close_decision(j, ActionState::kSuperseded, "a newer decision of this job");
    j.decision = new_decision();
    j.open = true;
    j.decision_attempt = j.attempt.attempt;
    j.decision_root = root;
    j.decided_ns = now;
    j.approved_by.clear();
    j.refused.clear();
    if (j.attempt.detected_ns == kNoTime) j.attempt.detected_ns = now;
    j.attempt.decided_ns = now;
    note(NoteKind::kDecided, &j, decided_sentence(j));
    isolatable(j, true);
    if (const auto refusal = guard.restart(j.partition)) note(NoteKind::kRefused, &j, refusal->why);
  }
  if (what.has(Do::kWouldDo))
    for (ActionOrder& order : plan(j)) {
      if (order.kind == OrderKind::kIsolate) guard.would_isolate(order.target, now);
      std::string text = fmt::format("would {} {}: {}", to_string(order.kind), order.target, order.reason);
      note(NoteKind::kWouldDo, &j, std::move(text), std::move(order));
    }
  if (what.has(Do::kAsk)) {
    Question question;
    question.decision = j.decision;
    question.job = j.key;
    question.text = decided_sentence(j);
    question.orders = plan(j);
    question.expires_ns = j.asks_until_ns = now + options.bounds.question_ns;
    out.emplace_back(std::move(question));
  }
}

void JobSteps::close_decision(ControlledJob& j, ActionState state, std::string_view detail) {
  for (const std::string& op : actions.close(j.decision, state, detail, now)) {
    const ActionRecord* record = actions.find(op);
    guard.end(record->order.target, op);
    note(NoteKind::kResult, &j,
         fmt::format("{} {} is {}: {}", to_string(record->order.kind), record->order.target, to_string(state),
                     detail),
         record->order);
  }
  j.open = false;
  j.asks_until_ns = kNoTime;
  j.approved_by.clear();
  j.waits.clear();
  j.checks_wait.clear();
}

// The orders of this decision as far as they are known now.
std::vector<ActionOrder> JobSteps::plan(ControlledJob& j) {
  std::vector<ActionOrder> orders;
  const bool may_restart = !guard.restart(j.partition);
  if (j.alive && may_restart) orders.push_back(order_of(j, OrderKind::kEndTasks, j.job.id));
  for (const std::string& host : isolatable(j, false))
    orders.push_back(order_of(j, OrderKind::kIsolate, host));
  if (may_restart && preview(j).again) orders.push_back(order_of(j, OrderKind::kRunAgain, j.job.id));
  return orders;
}

ActionOrder JobSteps::order_of(const ControlledJob& j, OrderKind kind, const std::string& target) const {
  ActionOrder order;
  order.decision = j.decision;
  order.kind = kind;
  order.target = target;
  order.op = op_of(order.decision, kind, target);
  order.job = j.job;
  const std::vector<std::string> before = excluded_of(j);
  std::set<std::string> without = hosts_of_decision(j);
  without.insert(before.begin(), before.end());
  order.excluded.assign(without.begin(), without.end());
  order.code = j.lead ? j.lead->code : j.stalled ? "HANG" : "UNKNOWN";
  order.reason = j.lead      ? reason_of(*j.lead, j.treatment)
                 : j.stalled ? "no progress"
                             : "the cause is not known";
  return order;
}

// Reserves and gives one order. False: it was given before.
bool JobSteps::emit(ControlledJob& j, OrderKind kind, const std::string& target, std::string precondition) {
  if (guard.permit() == Permit::kObserve) return false;
  ActionRecord record;
  record.order = order_of(j, kind, target);
  record.attempt = j.attempt.attempt;
  record.precondition = std::move(precondition);
  record.by = j.approved_by.empty() ? "culprit" : j.approved_by;
  if (j.lead) record.root = j.lead->root;
  if (!actions.reserve(record, now)) return false;
  if (kind != OrderKind::kVerify) j.waits.insert(record.order.op);
  if (kind == OrderKind::kRunAgain) j.ordered = record.order.excluded;
  out.emplace_back(record.order);
  return true;
}

void JobSteps::isolate_hosts(ControlledJob& j) {
  j.waits.clear();
  const bool group = j.treatment.machine == Machine::kGroup;
  // One after the other: each counts in the limits of the next.
  for (const std::string& host : j.treatment.hosts) {
    const std::vector<std::string> allowed = isolatable(j, true);
    if (std::ranges::find(allowed, host) == allowed.end()) continue;
    if (!emit(j, OrderKind::kIsolate, host, fmt::format("{} takes new work, and only we changed it", host)))
      continue;
    guard.isolated(host, now);
    guard.begin(host, op_of(j.decision, OrderKind::kIsolate, host));
    if (group) group_hosts.insert(host);
  }
}

void JobSteps::check_hosts(ControlledJob& j) {
  const bool align = j.treatment.align;
  const std::vector<std::string>& targets =
      align || j.treatment.hosts.empty() ? j.attempt.hosts : j.treatment.hosts;
  j.check_kind = align ? CheckKind::kAlign : CheckKind::kHost;
  j.checks.clear();
  j.checks_wait.clear();
  j.unknown_why.clear();
  if (targets.empty()) return;
  for (const std::string& host : targets) {
    j.checks[host] = CheckAnswer::kNoAnswer;
    j.checks_wait.insert(host);
  }
  CheckOrder order;
  order.decision = j.decision;
  order.job = j.key;
  order.hosts = targets;
  order.why = align ? "wrong numbers, and no host is certain: an equal step on each" : j.treatment.why;
  order.until_ns = now + options.bounds.check_ns;
  order.kind = j.check_kind;
  out.emplace_back(std::move(order));
}

void JobSteps::exclude_hosts(ControlledJob& j) {
  const std::set<std::string> of_this = hosts_of_decision(j);
  std::erase_if(j.excluded, [&](const auto& one) { return now - one.second >= options.policy.exclude_ns; });
  for (const std::string& host : of_this) leave_out(j, host);
  if (!can_spare(j, {})) {
    // Too few hosts are left: exclusions of earlier decisions end, so that the job does not wait for ever.
    const int64_t change = j.eligible_change;
    const size_t ended = std::erase_if(j.excluded, [&](const auto& one) {
      const bool ends = !of_this.contains(one.first);
      j.eligible_change += ends && is_in_service(one.first);
      return ends;
    });
    if (j.eligible_change > change)
      note(NoteKind::kRecord, &j,
           fmt::format("too few hosts: {} of earlier decisions may run the job again",
                       counted(ended, "host")));
  }
  // A slow host is better than none.
  std::erase_if(j.slow, [&](const std::string& host) {
    if (!of_this.contains(host) && !can_spare(j, {host})) return false;
    if (!of_this.contains(host))
      note(NoteKind::kRecord, &j, fmt::format("{} is left out: it was slow", host));
    leave_out(j, host);
    return true;
  });
}

void JobSteps::leave_out(ControlledJob& j, const std::string& host) {
  const auto [at, is_new] = j.excluded.insert_or_assign(host, now);
  if (is_new && is_in_service(host)) --j.eligible_change;
}

// A host that is left out since the evidence does not suffice: its check ends the doubt. It is idle now.
void JobSteps::check_doubtful(ControlledJob& j) {
  const bool in_doubt = j.treatment.machine == Machine::kExclude || j.treatment.machine == Machine::kGroup;
  if (!j.lead || !in_doubt || guard.check(j.partition)) return;
  std::erase_if(doubtful, [&](const auto& one) { return now >= one.second.until_ns; });
  const TimeNs until = now + options.policy.exclude_ns;
  CheckOrder order;
  for (const std::string& host : j.treatment.hosts) {
    const bool out_already = !is_in_service(host) || !j.excluded.contains(host);
    const bool isolated = actions.find(op_of(j.decision, OrderKind::kIsolate, host)) != nullptr;
    if (out_already || isolated || doubtful.size() >= kDoubtfulHosts) continue;
    if (!doubtful.emplace(host, DoubtfulHost{j.key, *j.lead, until}).second) continue;
    order.hosts.push_back(host);
  }
  if (order.hosts.empty() || guard.permit() == Permit::kObserve) return;
  order.decision = j.decision;
  order.why =
      fmt::format("{} was left out for one job, and nothing else speaks against it", shown_list(order.hosts));
  order.until_ns = now + options.bounds.check_ns;
  out.emplace_back(std::move(order));
}

// The scheduler waits for hosts: another order follows, without the exclusions of earlier decisions.
void JobSteps::ask_again(ControlledJob& j) {
  const std::string approved_by = j.approved_by;
  close_decision(j, ActionState::kSuperseded, "too few hosts: exclusions of earlier decisions end");
  j.approved_by = approved_by;
  j.decision = new_decision();
  j.open = true;
  j.decided_ns = now;
  j.next.wait_ns = 0;
  exclude_hosts(j);
  note(NoteKind::kDecided, &j,
       "the scheduler waits for hosts: the job runs on hosts that were left out before");
}

// Whether an order without exclusions that ended, or that may end, would give the scheduler hosts enough.
bool JobSteps::frees_hosts(const ControlledJob& j) const {
  const std::set<std::string> of_this = hosts_of_decision(j);
  int64_t ended = 0, may_end = 0;
  for (const std::string& host : j.ordered) {
    if (!is_in_service(host)) continue;
    if (!j.excluded.contains(host))
      ++ended;
    else if (!of_this.contains(host))
      ++may_end;
  }
  if (!j.means || !j.means->eligible) return ended > 0;
  const auto needed = static_cast<int64_t>(j.means->needed != 0 ? j.means->needed : j.attempt.hosts.size());
  const int64_t eligible = *j.means->eligible + j.eligible_change;
  return eligible - ended < needed && eligible + may_end >= needed;
}

std::vector<std::string> JobSteps::excluded_of(const ControlledJob& j) const {
  std::vector<std::string> names;
  for (const auto& [host, at] : j.excluded)
    if (now - at < options.policy.exclude_ns) names.push_back(host);
  return names;
}

bool JobSteps::is_in_service(const std::string& host) const {
  if (const auto seen = hosts.find(host); seen != hosts.end() && seen->second.out) return false;
  const MachineRecord* machine = machines.find(host);
  return machine == nullptr || machine->op.empty();
}

// Whether the job has hosts enough without these, too; true if it is unknown.
bool JobSteps::can_spare(const ControlledJob& j, const std::vector<std::string>& without) const {
  if (!j.means || !j.means->eligible) return true;
  const auto needed = static_cast<int64_t>(j.means->needed != 0 ? j.means->needed : j.attempt.hosts.size());
  int64_t left = *j.means->eligible + j.eligible_change;
  for (const std::string& host : without) left -= !j.excluded.contains(host) && is_in_service(host);
  return left >= needed;
}

// A restart for a slow host costs a start; without it, the host costs its share until the next failure.
bool JobSteps::pays_to_restart(const ControlledJob& j) const {
  constexpr TimeNs kDay = 24 * 3600 * kNsPerSecond;
  const auto failures = static_cast<TimeNs>(j.ledger.ended_within(kDay, now));
  const double until_failure = static_cast<double>(kDay / (failures + 1));
  const TimeNs start = j.start_took_ns == kNoTime ? options.bounds.restart_ns : j.start_took_ns;
  return j.lead && j.lead->step_share * until_failure > static_cast<double>(start) &&
         can_spare(j, j.lead->hosts);
}

}  // namespace culprit::recover
