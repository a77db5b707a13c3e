#include "core/recover/cost.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace culprit::recover {
namespace {

constexpr double kSecondsPerNs = 1e-9;

// Seconds from one time to another; 0 if one is unknown or they are in the wrong order.
double between(TimeNs from, TimeNs to) {
  return from == kNoTime || to == kNoTime || to < from ? 0 : static_cast<double>(to - from) * kSecondsPerNs;
}

bool known_span(TimeNs from, TimeNs to) { return from != kNoTime && to != kNoTime && to >= from; }

auto identity(const ScheduledJob& job) { return std::tie(job.scheduler, job.id, job.uid, job.submit_ns); }

bool by_job_and_time(const AttemptRecord* a, const AttemptRecord* b) {
  return std::tuple(identity(a->job), a->attempt, a->begin_ns) <
         std::tuple(identity(b->job), b->attempt, b->begin_ns);
}

bool failed(const AttemptRecord& a, bool last) {
  return a.end_ns != kNoTime && (!last || !a.root.empty() || !a.decision.empty());
}

// The part of an attempt that later attempts can use.
double productive(const AttemptRecord& a, const Loss& loss, bool has_failed) {
  const TimeNs until = a.last_progress_ns != kNoTime ? a.last_progress_ns : a.end_ns;
  const double trained = between(a.first_step_ns, until);
  return std::max(0.0, trained - (has_failed ? loss.redone_s : 0));
}

void add_spans(const AttemptRecord& a, const AttemptRecord* next, CostSpans& spans) {
  if (known_span(a.last_progress_ns, a.detected_ns))
    spans.detect.push_back(between(a.last_progress_ns, a.detected_ns));
  if (known_span(a.detected_ns, a.decided_ns)) spans.decide.push_back(between(a.detected_ns, a.decided_ns));
  if (next != nullptr && known_span(a.decided_ns, next->first_step_ns))
    spans.again.push_back(between(a.decided_ns, next->first_step_ns));
}

}  // namespace

Quantiles quantiles_of(std::vector<double> seconds) {
  Quantiles out;
  if (seconds.empty()) return out;
  std::ranges::sort(seconds);
  const auto rank = [&](double share) {
    const auto at = static_cast<size_t>(std::ceil(share * static_cast<double>(seconds.size())));
    return seconds[std::max<size_t>(at, 1) - 1];
  };
  out.count = seconds.size();
  out.median_s = rank(0.5);
  out.p90_s = rank(0.9);
  out.most_s = seconds.back();
  return out;
}

Loss loss_of(const AttemptRecord& a, const AttemptRecord* next) {
  Loss out;
  const TimeNs progressed = a.last_progress_ns != kNoTime ? a.last_progress_ns : a.begin_ns;
  out.stalled_s = between(progressed, a.end_ns);
  // Without a checkpoint of this attempt all its work is computed again.
  if (a.first_step_ns != kNoTime)
    out.redone_s = between(a.saved_ns != kNoTime ? a.saved_ns : a.first_step_ns, a.last_progress_ns);
  if (next != nullptr)
    out.away_s = between(a.end_ns, next->first_step_ns != kNoTime ? next->first_step_ns : next->begin_ns);
  return out;
}

void add_quantiles(CostSpans spans, Cost& cost) {
  cost.detect = quantiles_of(std::move(spans.detect));
  cost.decide = quantiles_of(std::move(spans.decide));
  cost.again = quantiles_of(std::move(spans.again));
}

Cost cost_of(std::span<const AttemptRecord> attempts) {
  CostSpans spans;
  Cost out = cost_of(attempts, spans);
  add_quantiles(std::move(spans), out);
  return out;
}

Cost cost_of(std::span<const AttemptRecord> attempts, CostSpans& spans) {
  std::vector<const AttemptRecord*> sorted;
  sorted.reserve(attempts.size());
  for (const AttemptRecord& a : attempts) sorted.push_back(&a);
  std::ranges::sort(sorted, by_job_and_time);

  Cost out;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const AttemptRecord& a = *sorted[i];
    const bool first = i == 0 || identity(sorted[i - 1]->job) != identity(a.job);
    const bool last = i + 1 == sorted.size() || identity(sorted[i + 1]->job) != identity(a.job);
    const AttemptRecord* next = last ? nullptr : sorted[i + 1];
    const bool has_failed = failed(a, last);
    const Loss loss = loss_of(a, next);
    out.jobs += first;
    ++out.attempts;
    // A running attempt counts until its last progress; the gap to the next attempt is the job's time too.
    const TimeNs until = next != nullptr       ? next->begin_ns
                         : a.end_ns != kNoTime ? a.end_ns
                                               : a.last_progress_ns;
    out.wall_s += between(a.begin_ns, until);
    out.productive_s += productive(a, loss, has_failed);
    if (!has_failed) continue;
    ++out.failures;
    out.lost_s[a.cause] += loss.total();
    add_spans(a, next, spans);
  }
  return out;
}

}  // namespace culprit::recover
