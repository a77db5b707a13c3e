// Hosts: isolation and return, and the reconciliation of memory with the real state.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "core/recover/controller_impl.h"

namespace culprit::recover {
namespace {

constexpr size_t kTitleBytes = 120;  // of a cause in an order: schedulers show less

}  // namespace

void HostSteps::settle_isolation(const ActionRecord& record, const ActionResult& result) {
  const std::string& host = record.order.target;
  switch (record.state) {
    case ActionState::kDone: {
      machines.isolated(host, record.order.op, record.root, now);
      const std::string again = machines.again(host, options.policy.machine_window_ns, now);
      if (!again.empty()) note(NoteKind::kRecord, nullptr, "isolated again: " + again, record.order);
      if (group_hosts.contains(host) && !guard.check(hosts[host].partition)) {
        CheckOrder order;
        order.decision = record.order.decision;
        order.hosts = {host};
        order.why = fmt::format("{} was isolated with its group and is probably innocent", host);
        order.until_ns = now + options.bounds.check_ns;
        out.emplace_back(std::move(order));
      }
      break;
    }
    case ActionState::kFailed:
    case ActionState::kSuperseded:
      guard.not_isolated(host);
      group_hosts.erase(host);
      break;
    default:
      break;  // ambiguous: it may be out, so it counts in the limits until it is seen
  }
  if (record.state == ActionState::kSuperseded) hosts[host].out = true;
  if (record.state == ActionState::kFailed && result.detail.empty())
    note(NoteKind::kRecord, nullptr, fmt::format("{} was not isolated, and no reason was given", host));
}

void HostSteps::settle_return(const ActionRecord& record, const ActionResult& result) {
  const std::string& host = record.order.target;
  note(NoteKind::kResult, nullptr,
       fmt::format("return {}: {}{}{}", host, to_string(record.state), result.detail.empty() ? "" : ", ",
                   result.detail),
       record.order);
  if (record.state != ActionState::kDone) return;
  if (const MachineRecord* m = machines.find(host); m != nullptr && !m->op.empty())
    actions.undo(m->op, guard.has_veto(host, record.root, now) ? record.by : "", "returned", now);
  machines.returned(host, now);
  guard.returned(host, now);
  group_hosts.erase(host);
  hosts[host].out = false;
  include_host(host);
}

void HostSteps::take(const HostSeen& in) {
  ControlledHost& known = hosts[in.host];
  const ControlledHost was = known;
  known.out = in.out;
  known.op = in.op;
  known.by = in.by;
  if (!in.partition.empty()) known.partition = in.partition;
  if (in.boot_ns != kNoTime) known.boot_ns = in.boot_ns;
  if (was.out && !in.out) include_host(in.host);
  const MachineRecord* machine = machines.find(in.host);
  const bool is_old = machine != nullptr && machine->isolated_ns != kNoTime &&
                      machine->isolated_ns >= (in.read_ns == kNoTime ? now : in.read_ns);
  if (!is_old) reconcile(in.host, was);
}

// A host that is back, or that passed its check, is left out for no job any more.
void HostSteps::include_host(const std::string& host) {
  doubtful.erase(host);
  for (auto& [key, j] : jobs) {
    j.slow.erase(host);
    if (j.excluded.erase(host) > 0 && is_in_service(host)) ++j.eligible_change;
  }
}

// A person's return contradicts the isolation if it comes soon and nothing was mended: no check was passed
// and the host has not booted since. A repair takes longer.
bool HostSteps::is_undo(const std::string& host, TimeNs isolated_ns) const {
  if (isolated_ns == kNoTime) return true;
  const auto known = hosts.find(host);
  const auto since = [&](TimeNs at) { return at != kNoTime && at > isolated_ns; };
  const bool mended =
      known != hosts.end() && (since(known->second.passed_ns) || since(known->second.boot_ns));
  return !mended && now - isolated_ns < options.guard.undo_ns;
}

// Memory follows the real state, also where another actor changed it.
void HostSteps::reconcile(const std::string& host, const ControlledHost& was) {
  const ControlledHost& seen = hosts[host];
  const MachineRecord* machine = machines.find(host);
  const std::string ours = machine == nullptr ? std::string() : machine->op;
  const std::string by = seen.by.empty() ? "another actor" : seen.by;
  bool returning = false;
  for (const ActionRecord* open : actions.open())
    returning = returning || (open->order.kind == OrderKind::kReturn && open->order.target == host);

  if (!ours.empty() && seen.op != ours && !returning) {
    const ActionRecord* record = actions.find(ours);
    const std::string root = record == nullptr ? machine->last_root : record->root;
    // An own return that the result did not report yet is no veto: it is open above.
    const bool undo = !seen.out && is_undo(host, machine->isolated_ns);
    if (seen.out) {
      note(NoteKind::kRecord, nullptr, fmt::format("{} is now held out by {}: no longer ours", host, by));
    } else if (!undo) {
      note(NoteKind::kRecord, nullptr, fmt::format("{} was returned by {} after a repair", host, by));
      machines.repaired(host, now);
    } else {
      guard.vetoed(host, root, now);
      note(NoteKind::kRecord, nullptr,
           fmt::format("{} was returned by {}: the same cause does not isolate it for {}", host, by,
                       format_duration(options.guard.veto_ns)));
    }
    actions.undo(ours, undo ? by : "", fmt::format("changed by {}", by), now);
    machines.returned(host, now);
    guard.returned(host, now);
    group_hosts.erase(host);
  } else if (ours.empty() && seen.out && !seen.op.empty()) {
    const ActionRecord* record = actions.find(seen.op);
    const bool is_its_host =
        record != nullptr && record->order.kind == OrderKind::kIsolate && record->order.target == host;
    if (is_its_host && record->state == ActionState::kAmbiguous) {
      note(NoteKind::kRecord, nullptr, fmt::format("{} is isolated after all", host), record->order);
      machines.isolated(host, seen.op, record->root, now);
      actions.adopt(seen.op, now);
    }
  }
  if (!seen.out || was.out || !seen.op.empty()) return;
  for (auto& [key, j] : jobs)
    if (j.state != JobState::kDone && std::ranges::find(j.attempt.hosts, host) != j.attempt.hosts.end())
      apply(j, JobEvidence::kHostByOthers);
}

// Whether a job waited for it.
bool HostSteps::answer_jobs(const HostChecked& in) {
  bool asked = false;
  for (auto& [key, j] : jobs) {
    if (j.check_kind != in.kind || j.checks_wait.erase(in.host) == 0) continue;
    asked = true;
    j.checks[in.host] = in.answer;
    if (in.answer == CheckAnswer::kNoAnswer && j.unknown_why.empty())
      j.unknown_why = fmt::format("{}: {}", in.host, in.why);
    if (!j.checks_wait.empty() || j.state != JobState::kCheck) continue;
    assess_checks(j);
    apply(j, JobEvidence::kChecked);
  }
  return asked;
}

void HostSteps::take(const HostChecked& in) {
  const bool failed = in.answer == CheckAnswer::kFailed;
  // Equal bits say nothing of the rest of the host: they return none, and end no doubt.
  if (in.kind == CheckKind::kAlign) {
    if (failed) {
      machines.confirmed(in.host, now);
      note(NoteKind::kRecord, nullptr, fmt::format("{}: it computes other bits: {}", in.host, in.why));
    }
    return void(answer_jobs(in));
  }
  const bool asked = answer_jobs(in);
  const MachineRecord* machine = machines.find(in.host);
  if (failed) {
    group_hosts.erase(in.host);
    machines.confirmed(in.host, now);
    note(NoteKind::kRecord, nullptr, fmt::format("{}: its check failed: {}", in.host, in.why));
    if (machine == nullptr || machine->op.empty()) {
      if (in.spare && !doubtful.contains(in.host))
        isolate_spare(in.host, in.why);
      else
        isolate_doubtful(in.host);
    }
    doubtful.erase(in.host);
    return;
  }
  const bool ours = machine != nullptr && !machine->op.empty();
  if (in.answer == CheckAnswer::kPassed) {
    hosts[in.host].passed_ns = now;
    if (doubtful.contains(in.host)) {
      note(NoteKind::kRecord, nullptr, fmt::format("{} passed its check: it is left out no more", in.host));
      include_host(in.host);
    }
    // Memory and disk are no evidence against wrong bits.
    const ActionRecord* isolation = ours ? actions.find(machine->op) : nullptr;
    if (ours && (isolation == nullptr ? machine->last_root : isolation->root) == kAlignRoot)
      return note(
          NoteKind::kRefused, nullptr,
          fmt::format("{}: its check passed, which says nothing of the bits that it computes: a person "
                      "must return it (`culprit recover undo`)",
                      in.host));
    if (ours) return offer_return(in.host, "its check passed");
  }
  doubtful.erase(in.host);
  if (!asked && in.answer == CheckAnswer::kNoAnswer)
    note(NoteKind::kRecord, nullptr, fmt::format("{}: its check gave no answer, which is unknown", in.host));
}

void HostSteps::offer_return(const std::string& host, std::string_view why) {
  const std::string again = machines.again(host, options.policy.machine_window_ns, now);
  if (machines.isolations_within(host, options.policy.machine_window_ns, now) >=
      options.policy.machine_repeat)
    return note(NoteKind::kRefused, nullptr,
                fmt::format("{}: a person must return it (`culprit recover undo`)", again));
  for (const auto& [decision, pending] : host_asks)
    if (pending.host == host) return;
  const auto known = hosts.find(host);
  const std::string partition = known == hosts.end() ? std::string() : known->second.partition;
  if (const auto refusal = guard.give_back(host, partition))
    return note(NoteKind::kRefused, nullptr, fmt::format("{} is not returned: {}", host, refusal->why));
  const std::string decision = new_decision();
  ActionOrder order;
  order.decision = decision;
  order.kind = OrderKind::kReturn;
  order.target = host;
  order.op = op_of(decision, OrderKind::kReturn, host);
  order.reason = why;
  switch (guard.permit()) {
    case Permit::kObserve:
      return note(NoteKind::kWouldDo, nullptr, fmt::format("would return {}: {}", host, why), order);
    case Permit::kAsk: {
      Question question;
      question.decision = decision;
      question.text = fmt::format("return {}: {}", host, why);
      question.orders = {order};
      question.expires_ns = now + options.bounds.question_ns;
      host_asks[decision] = {host, question.expires_ns};
      out.emplace_back(std::move(question));
      return;
    }
    case Permit::kGranted:
      return order_return(host, decision, "culprit");
  }
}

void HostSteps::order_return(const std::string& host, const std::string& decision, const std::string& by) {
  const MachineRecord* machine = machines.find(host);
  if (machine == nullptr || machine->op.empty()) return;
  ActionRecord record;
  record.order.decision = decision;
  record.order.kind = OrderKind::kReturn;
  record.order.target = host;
  record.order.code = machine->op;  // the mark to remove
  record.order.reason = fmt::format("returned by {}", by);
  record.precondition = fmt::format("{} has our mark {}", host, machine->op);
  record.by = by;
  record.root = machine->last_root;
  if (!actions.reserve(record, now)) return;
  guard.begin(host, record.order.op);
  out.emplace_back(record.order);
}

void HostSteps::answer_host_ask(const std::string& decision, bool approved, const std::string& by) {
  const auto at = host_asks.find(decision);
  const HostAsk ask = std::move(at->second);
  host_asks.erase(at);
  if (!approved)
    return note(
        NoteKind::kRecord, nullptr,
        fmt::format("{} is not {}: declined by {}", ask.host, ask.isolate ? "isolated" : "returned", by));
  if (!ask.isolate) return order_return(ask.host, decision, by);
  if (is_in_service(ask.host)) isolate_checked(ask.host, *ask.isolate, nullptr, decision, by);
}

// The check is an author that no user of the host is: what was an exclusion becomes an isolation.
void HostSteps::isolate_doubtful(const std::string& host) {
  const auto at = doubtful.find(host);
  const auto job = at == doubtful.end() ? jobs.end() : jobs.find(at->second.job);
  if (job == jobs.end() || guard.permit() != Permit::kGranted || !is_in_service(host)) return;
  Case why = at->second.lead;
  why.authors.plugin = true;
  why.confidence = 1;
  why.newest_ns = now;
  isolate_checked(host, why, &job->second, new_decision(), "culprit");
}

// A host that no job used yet: its check is the whole evidence. The scheduler, or the pool's next filling,
// puts another one in its place.
void HostSteps::isolate_spare(const std::string& host, const std::string& why) {
  if (!is_in_service(host)) return;
  Case found;
  found.fault = FaultClass::kDevice;
  found.authors.plugin = true;
  found.root = "node-check: a spare host failed its check";
  found.code = "CHECK";
  found.title = why;
  found.confidence = 1;
  found.newest_ns = now;
  const std::string text = fmt::format("isolate the spare {}: its check failed: {}", host, why);
  switch (guard.permit()) {
    case Permit::kObserve:
      return note(NoteKind::kWouldDo, nullptr, "would " + text);
    case Permit::kGranted:
      return isolate_checked(host, found, nullptr, new_decision(), "culprit");
    case Permit::kAsk:
      break;
  }
  for (const auto& [decision, ask] : host_asks)
    if (ask.host == host) return;
  Question question;
  question.decision = new_decision();
  question.text = text;
  ActionOrder order;
  order.decision = question.decision;
  order.kind = OrderKind::kIsolate;
  order.target = host;
  order.op = op_of(question.decision, OrderKind::kIsolate, host);
  order.code = found.code;
  question.orders = {order};
  question.expires_ns = now + options.bounds.question_ns;
  found.newest_ns = kNoTime;  // the answer decides how long the evidence counts
  host_asks[question.decision] = {host, question.expires_ns, std::move(found)};
  out.emplace_back(std::move(question));
}

// `job` null: of no job.
void HostSteps::isolate_checked(const std::string& host, const Case& why, const ControlledJob* job,
                                const std::string& decision, const std::string& by) {
  IsolationWish wish;
  wish.host = host;
  wish.partition = hosts[host].partition.empty() && job != nullptr ? job->partition : hosts[host].partition;
  wish.why = &why;
  wish.decided_ns = now;
  wish.confidence_needed = options.policy.isolate_confidence;
  if (const auto refusal = guard.isolate(wish, now))
    return note(NoteKind::kRefused, nullptr, fmt::format("{} is not isolated: {}", host, refusal->why));
  ActionRecord record;
  record.order.decision = decision;
  record.order.kind = OrderKind::kIsolate;
  record.order.target = host;
  record.order.code = why.code;
  record.order.reason = "its node check failed: " + shorten(to_terminal(why.title), kTitleBytes);
  if (job != nullptr) record.order.job = job->job, record.attempt = job->attempt.attempt;
  record.precondition = fmt::format("{} takes new work, and only we changed it", host);
  record.by = by;
  record.root = why.root;
  if (!actions.reserve(record, now)) return;
  guard.isolated(host, now);
  guard.begin(host, record.order.op);
  out.emplace_back(record.order);
}

// A person's order: neither mode nor stage forbids it, and it is a veto for the cause.
void HostSteps::take(const Undo& in) {
  const ActionRecord* record = actions.find(in.op);
  const MachineRecord* machine = record == nullptr ? nullptr : machines.find(record->order.target);
  if (machine == nullptr || machine->op != in.op)
    return note(NoteKind::kRecord, nullptr, fmt::format("{}: no isolation that is in force", in.op));
  const std::string host = record->order.target;
  guard.vetoed(host, record->root, now);
  order_return(host, new_decision(), in.by.empty() ? "a person" : in.by);
}

void HostSteps::take(const HostRepaired& in) {
  hosts[in.host].passed_ns = now;  // a return that follows is no undo
  machines.repaired(in.host, now);
  include_host(in.host);
  note(NoteKind::kRecord, nullptr, fmt::format("{} was mended, says {}", in.host, in.by));
  const MachineRecord* machine = machines.find(in.host);
  if (machine != nullptr && !machine->op.empty())
    order_return(in.host, new_decision(), in.by.empty() ? "a person" : in.by);
}

}  // namespace culprit::recover
