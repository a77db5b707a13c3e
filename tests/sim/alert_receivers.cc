#include "alert_receivers.h"

namespace culprit::sim {
namespace {

using app::DeliveryOutcome;
using Kind = DeliveryOutcome::Kind;

constexpr TimeNs kGivesUpAfter = 10 * kNsPerSecond;

}  // namespace

DeliveryOutcome AlertReceiver::deliver(SimEnv& env, const app::DeliveryOrder& order) {
  uint32_t at = static_cast<uint32_t>(random_.below(100));
  const auto is = [&at](uint32_t percent) {
    const bool chosen = at < percent;
    at = chosen ? 100 : at - percent;
    return chosen;
  };
  DeliveryOutcome out{Kind::kFailed, "", std::nullopt, 0};
  const auto fails = [&](const char* sentence) {
    ++failures;
    out.sentence = sentence;
    return out;
  };
  if (is(faults.refuses)) return fails("connection refused");
  if (is(faults.busy)) {
    out.retry_after_ns = random_.range(1, 400) * kNsPerSecond;
    return fails("answered 503");
  }
  if (is(faults.lost)) {
    env.prolong_work(kGivesUpAfter);
    return fails("no answer");
  }
  if (is(faults.unheard)) {
    env.prolong_work(kGivesUpAfter);
    take(order, false);
    return fails("no answer");
  }
  if (is(faults.late)) env.prolong_work(random_.range(1, 9) * kNsPerSecond);
  take(order, true);
  out.kind = Kind::kSent;
  return out;
}

void AlertReceiver::take(const app::DeliveryOrder& order, bool answered) {
  if (!answered) ++unanswered;
  for (const alert::Message& m : order.messages) {
    auto issue = alert::issue_from_json(m.body);
    if (!issue) continue;
    if (issue->storm.empty()) runs_.emplace(issue->fault.job, issue->fault.run);
    taken_.push_back({m.id, m.body, std::move(*issue), world_.monotonic_ns(), answered});
    last_[m.issue] = taken_.back();
  }
}

VerdictReader::State VerdictReader::state_of(const app::RunVerdict& verdict) {
  return {verdict.verdict ? verdict.verdict->id() : "", verdict.refuted};
}

void VerdictReader::read(std::span<const app::RunVerdict> verdicts) {
  ++calls;
  for (const app::RunVerdict& v : verdicts) states[{v.job, v.run}] = state_of(v);
}

}  // namespace culprit::sim
