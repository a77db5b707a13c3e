// The public face of the controller; the parts are in controller_{inputs,steps,hosts,restore}.cc.
#include "core/recover/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "core/recover/controller_impl.h"

namespace culprit::recover {

std::string key_of(const ScheduledJob& job) {
  std::string key = fmt::format("{}/{}", job.scheduler, job.id);
  if (!job.uid.empty()) return key + "@" + job.uid;
  return job.submit_ns == kNoTime ? key : fmt::format("{}@{}", key, job.submit_ns);
}

std::string_view to_string(NoteKind kind) {
  switch (kind) {
    case NoteKind::kDecided:
      return "decided";
    case NoteKind::kWouldDo:
      return "would-do";
    case NoteKind::kRefused:
      return "refused";
    case NoteKind::kResult:
      return "result";
    case NoteKind::kHeld:
      return "held";
    case NoteKind::kAdvice:
      return "advice";
    case NoteKind::kReminder:
      return "reminder";
    case NoteKind::kRecord:
      break;
  }
  return "record";
}

Controller::Controller(ControllerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Controller::~Controller() = default;
Controller::Controller(Controller&&) noexcept = default;

std::vector<Order> Controller::step(std::span<const Input> inputs, TimeNs now) {
  impl_->now = now;
  for (const Input& input : inputs) std::visit([&](const auto& in) { impl_->take(in); }, input);
  impl_->fire_limits();
  return std::exchange(impl_->out, {});
}

TimeNs Controller::next_ns() const {
  TimeNs soonest = kNoTime;
  const auto add = [&](TimeNs at) {
    if (at != kNoTime && (soonest == kNoTime || at < soonest)) soonest = at;
  };
  for (const auto& [key, j] : impl_->jobs) {
    add(j.limit_ns);
    add(j.asks_until_ns);
    if (j.advice) add(j.advice->until_ns);
  }
  for (const auto& [decision, pending] : impl_->asked) add(pending.until_ns);
  for (const auto& [decision, pending] : impl_->host_asks) add(pending.until_ns);
  return soonest;
}

std::vector<ActionRecord> Controller::drain_actions() { return impl_->actions.drain(); }
std::vector<MachineRecord> Controller::drain_machines() { return impl_->machines.drain(); }

std::vector<AttemptRecord> Controller::drain_attempts() {
  std::vector<AttemptRecord> out;
  for (auto& [key, record] : std::exchange(impl_->attempts_out, {})) out.push_back(std::move(record));
  return out;
}

std::vector<std::string> Controller::explain(const std::string& key) const {
  const auto at = impl_->jobs.find(key);
  if (at == impl_->jobs.end()) return {};
  return {at->second.why.begin(), at->second.why.end()};
}

std::optional<JobView> Controller::view(const std::string& key) const {
  const auto at = impl_->jobs.find(key);
  if (at == impl_->jobs.end()) return std::nullopt;
  const ControlledJob& j = at->second;
  JobView out;
  out.key = key;
  out.job = j.job;
  out.state = j.state;
  out.since_ns = j.since_ns;
  out.limit_ns = j.limit_ns;
  out.attempt = j.attempt.attempt;
  out.decision = j.decision;
  if (j.lead) {
    out.root = j.lead->root;
    out.fault = j.lead->fault;
  }
  out.machine = j.treatment.machine;
  out.why = j.why.empty() ? std::string() : j.why.back();
  out.advice = j.treatment.restart;
  out.asks = j.asks_until_ns != kNoTime;
  out.hosts = j.attempt.hosts;
  out.excluded = impl_->excluded_of(j);
  out.ended = j.attempt.end_ns != kNoTime;
  return out;
}

std::vector<std::string> Controller::waits(const std::string& key) const {
  const auto at = impl_->jobs.find(key);
  if (at == impl_->jobs.end() || !at->second.lead) return {};
  const ControlledJob& j = at->second;
  const bool rests = j.state == JobState::kRun || j.state == JobState::kSuspect || j.state == JobState::kHeld;
  if (!rests) return {};
  const Case& c = *j.lead;
  std::vector<std::string> out;
  const auto add = [&](const std::string& why) {
    out.push_back(fmt::format("{} (confidence {:.2f}): {}", to_terminal(c.title), c.confidence, why));
  };
  const Policy& policy = impl_->options.policy;
  if (j.state == JobState::kSuspect)
    add(fmt::format("a better verdict, or progress, is awaited until {}", format_time(j.limit_ns)));
  if (j.alive && c.confidence < policy.stop_confidence)
    add(fmt::format("to end a running job needs a confidence of {:.2f}", policy.stop_confidence));
  if (!j.treatment.not_isolated.empty()) add("no host is isolated: " + j.treatment.not_isolated);
  if (j.alive && j.declined_root == c.root) add("a person declined it for this attempt");
  if (j.asks_until_ns != kNoTime)
    add(fmt::format("it waits for a person until {}: `culprit recover approve {}`",
                    format_time(j.asks_until_ns), j.decision));
  if (impl_->guard.permit() == Permit::kObserve)
    add("nothing is done in observe mode (act.mode)");
  else if (const auto refusal = impl_->guard.restart(j.partition))
    add(refusal->why);
  return out;
}

bool Controller::asks(const std::string& decision) const {
  return impl_->host_asks.contains(decision) || impl_->asked.contains(decision) ||
         std::ranges::any_of(impl_->jobs, [&](const auto& one) {
           return one.second.asks_until_ns != kNoTime && one.second.decision == decision;
         });
}

std::vector<std::string> Controller::jobs() const {
  std::vector<std::string> out;
  for (const auto& [key, j] : impl_->jobs) out.push_back(key);
  return out;
}

const Actions& Controller::actions() const { return impl_->actions; }
const Machines& Controller::machines() const { return impl_->machines; }
const Guard& Controller::guard() const { return impl_->guard; }

}  // namespace culprit::recover
