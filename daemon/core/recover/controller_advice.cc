// Advice to the loops of jobs: when it is given, and what came of it. It ends no process and takes out no
// host; it makes what may follow cheap, such as a checkpoint before a slow host leaves.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "core/recover/controller_impl.h"

namespace culprit::recover {
namespace {

// What this verdict advises; nothing: no advice.
std::optional<AskedAdvice> advice_for(const ControlledJob& j, bool pays) {
  const Case& c = *j.lead;
  AskedAdvice out;
  const std::string title = to_terminal(c.title);
  if (is_slow_host(j)) {
    if (!pays) return std::nullopt;
    out.advice.kind = AdviceKind::kSaveNow;
    out.advice.reason = AdviceReason::kSlowHost;
    out.why = fmt::format("{} on {}, which leaves the job after a checkpoint", title, shown_list(c.hosts));
    return out;
  }
  // Corrected errors often come before those that are not corrected.
  const bool may_die = c.fault == FaultClass::kHostMemory ||
                       (c.fault == FaultClass::kDevice && !c.authors.independent() && !j.stalled);
  if (may_die && !c.hosts.empty()) {
    out.advice.kind = AdviceKind::kSaveNow;
    out.advice.reason = AdviceReason::kDevice;
    out.why = fmt::format("{} on {}, which may fail", title, shown_list(c.hosts));
    return out;
  }
  if (c.fault != FaultClass::kNumeric || !c.iteration || *c.iteration < 0) return std::nullopt;
  out.advice.kind = AdviceKind::kRollback;
  out.advice.reason = AdviceReason::kNumbers;
  out.advice.argument = static_cast<double>(*c.iteration);
  out.why = fmt::format("{}: from a checkpoint before step {}", title, *c.iteration);
  return out;
}

}  // namespace

void AdviceSteps::advise(ControlledJob& j) {
  if (!options.advise || !j.lead || !j.alive || j.state != JobState::kRun) return;
  auto what = advice_for(j, is_slow_host(j) && pays_to_restart(j));
  if (!what) return;
  if (!j.advised.insert(fmt::format("{} {}", to_string(what->advice.kind), j.lead->root)).second) return;
  what->job = j.key;
  what->attempt = j.attempt.attempt;
  advice_id = std::max(advice_id + 1, static_cast<uint64_t>(std::max<TimeNs>(now / kNsPerMs, 1)));
  what->advice.id = advice_id;
  what->advice.lasts_ms = static_cast<uint32_t>(options.advice_ns / kNsPerMs);
  const std::string text =
      fmt::format("advise {} to job {}: {}", to_string(what->advice.kind), j.job.id, what->why);
  switch (guard.permit()) {
    case Permit::kObserve:
      return note(NoteKind::kWouldDo, &j, "would " + text);
    case Permit::kAsk: {
      Question question;
      question.decision = fmt::format("advice-{}", what->advice.id);
      question.job = j.key;
      question.text = text;
      question.advises = true;
      question.expires_ns = what->until_ns = now + options.bounds.question_ns;
      asked.emplace(question.decision, std::move(*what));
      out.emplace_back(std::move(question));
      return;
    }
    case Permit::kGranted:
      return give_advice(j, *what);
  }
}

void AdviceSteps::give_advice(ControlledJob& j, const AskedAdvice& what) {
  AdviceOrder order;
  order.decision = fmt::format("advice-{}", what.advice.id);
  order.job = j.job;
  order.advice = what.advice;
  order.why = what.why;
  j.advice = {what.advice.id, what.advice.kind, now + options.advice_ns, false};
  note(NoteKind::kAdvice, &j, fmt::format("{} is advised: {}", to_string(what.advice.kind), what.why));
  out.emplace_back(std::move(order));
}

void AdviceSteps::answer_advice(const std::string& decision, bool approved, const std::string& by) {
  const AskedAdvice what = asked.at(decision);
  asked.erase(decision);
  const auto at = jobs.find(what.job);
  const bool moot = at == jobs.end() || !at->second.alive || at->second.attempt.attempt != what.attempt;
  note(NoteKind::kRecord, at == jobs.end() ? nullptr : &at->second,
       fmt::format("{}: {} by {}", decision, approved ? "approved" : "declined", by));
  if (approved && moot)
    note(NoteKind::kRecord, nullptr, fmt::format("{}: that attempt of the job has ended", decision));
  else if (approved && guard.permit() != Permit::kObserve)
    give_advice(at->second, what);
}

bool AdviceSteps::note_outcome(const AdviceSeen& in) {
  ControlledJob* const j = find(in.job);
  if (j == nullptr || in.job.restarts < j->job.restarts) return false;
  std::string text = fmt::format("advice {} ({}): {} by {}", to_string(in.kind), in.id, to_string(in.outcome),
                                 counted(in.ranks, "rank"));
  if (in.step >= 0) text += fmt::format(" at step {}", in.step);
  if (!in.why.empty()) text += fmt::format(", {}", to_terminal(in.why));
  note(NoteKind::kResult, j, std::move(text));
  // An agent may have given a greater id than ours.
  const bool ours = j->advice && j->advice->kind == in.kind && in.id >= j->advice->id;
  if (in.outcome == AdviceOutcome::kTaken) {
    if (ours) j->advice->taken = true;
    return false;
  }
  if (ours && !(in.outcome == AdviceOutcome::kNotApplied && j->advice->taken)) j->advice.reset();
  return in.outcome == AdviceOutcome::kAchieved && in.kind == AdviceKind::kSaveNow;
}

void AdviceSteps::end_late_advice() {
  for (auto& [key, j] : jobs) {
    if (!j.advice || now < j.advice->until_ns) continue;
    note(NoteKind::kResult, &j,
         fmt::format(
             "advice {} ({}): {}", to_string(j.advice->kind), j.advice->id,
             j.advice->taken ? "taken, and not achieved in time" : "not applied: no rank took it in time"));
    j.advice.reset();
  }
  std::vector<std::string> expired;
  for (const auto& [decision, what] : asked)
    if (now >= what.until_ns) expired.push_back(decision);
  for (const std::string& decision : expired) answer_advice(decision, false, "the clock");
}

}  // namespace culprit::recover
