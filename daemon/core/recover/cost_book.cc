#include "core/recover/cost_book.h"

#include <fmt/format.h>

#include <algorithm>

namespace culprit::recover {
namespace {

std::string identity_of(const ScheduledJob& job) {
  return fmt::format("{}/{}@{}@{}", job.scheduler, job.id, job.uid, job.submit_ns);
}

void add_spans(const std::vector<double>& seconds, int sign, CostHistogram& to) {
  for (const double one : seconds) {
    const auto at = std::ranges::lower_bound(kCostBounds, one) - kCostBounds.begin();
    to.counts[static_cast<size_t>(at)] += static_cast<uint64_t>(sign);
    to.sum_s += sign * one;
  }
}

void append(const std::vector<double>& from, std::vector<double>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

// Computes the job's cost from all its attempts.
void CostBook::count(Job& job) {
  std::vector<AttemptRecord> rows;
  rows.reserve(job.attempts.size());
  for (const auto& [number, t] : job.attempts) {
    AttemptRecord& row = rows.emplace_back();
    row.job = job.cost.job;
    row.attempt = number;
    row.begin_ns = t.begin_ns, row.end_ns = t.end_ns;
    row.first_step_ns = t.first_step_ns, row.last_progress_ns = t.last_progress_ns;
    row.saved_ns = t.saved_ns, row.detected_ns = t.detected_ns, row.decided_ns = t.decided_ns;
    row.cause = t.cause;
    if (t.has_root) row.root = "known";
    if (t.has_decision) row.decision = "known";
    job.cost.last_ns = std::max({job.cost.last_ns, t.begin_ns, t.end_ns});
  }
  job.spans = {};
  job.cost.cost = cost_of(rows, job.spans);
}

void CostBook::add(const Job& job, int sign) {
  const Cost& cost = job.cost.cost;
  const auto times = static_cast<uint64_t>(sign);  // -1 wraps around
  total_.jobs += times * cost.jobs;
  total_.attempts += times * cost.attempts;
  total_.failures += times * cost.failures;
  total_.wall_s += sign * cost.wall_s;
  total_.productive_s += sign * cost.productive_s;
  for (const auto& [cause, seconds] : cost.lost_s) total_.lost_s[cause] += sign * seconds;
  add_spans(job.spans.detect, sign, detect_);
  add_spans(job.spans.decide, sign, decide_);
  add_spans(job.spans.again, sign, again_);
}

void CostBook::put(const AttemptRecord& a) {
  const std::string key = identity_of(a.job);
  const auto [at, is_new] = jobs_.try_emplace(key);
  Job& job = at->second;
  if (is_new) {
    job.cost.job = a.job;
  } else {
    add(job, -1);
  }
  job.attempts[a.attempt] = {a.begin_ns,      a.end_ns,           a.first_step_ns, a.last_progress_ns,
                             a.saved_ns,      a.detected_ns,      a.decided_ns,    a.cause,
                             !a.root.empty(), !a.decision.empty()};
  count(job);
  add(job, 1);
  const auto [known, first] = newest_of_id_.try_emplace(a.job.id, key);
  if (!first && known->second != key)
    if (const auto other = jobs_.find(known->second);
        other == jobs_.end() || other->second.cost.last_ns <= job.cost.last_ns)
      known->second = key;
}

void CostBook::prune(TimeNs until) {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    const JobCost& cost = at->second.cost;
    if (cost.last_ns == kNoTime || cost.last_ns >= until) {
      ++at;
      continue;
    }
    add(at->second, -1);
    if (const auto known = newest_of_id_.find(cost.job.id);
        known != newest_of_id_.end() && known->second == at->first)
      newest_of_id_.erase(known);
    at = jobs_.erase(at);
  }
}

CostSpans CostBook::spans() const {
  CostSpans out;
  for (const auto& [key, job] : jobs_) {
    append(job.spans.detect, out.detect);
    append(job.spans.decide, out.decide);
    append(job.spans.again, out.again);
  }
  return out;
}

std::vector<CostBook::JobCost> CostBook::newest(size_t most) const {
  std::vector<const JobCost*> found;
  found.reserve(jobs_.size());
  for (const auto& [key, job] : jobs_) found.push_back(&job.cost);
  const size_t n = std::min(most, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(n), found.end(),
                    [](const JobCost* a, const JobCost* b) { return a->last_ns > b->last_ns; });
  std::vector<JobCost> out;
  for (size_t i = 0; i < n; ++i) out.push_back(*found[i]);
  return out;
}

const CostBook::JobCost* CostBook::find(const std::string& id) const {
  const auto known = newest_of_id_.find(id);
  const auto job = known == newest_of_id_.end() ? jobs_.end() : jobs_.find(known->second);
  return job == jobs_.end() ? nullptr : &job->second.cost;
}

}  // namespace culprit::recover
