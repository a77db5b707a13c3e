#include "core/replay/judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace culprit::replay {
namespace {

constexpr size_t kTop = 512;  // hypotheses that the next runs tell apart
constexpr double kImprobable = 0.05;
constexpr double kBetter = 10;
constexpr double kOtherShows[] = {0.99, 0.95, 0.7, 0.5, 0.3, 0.2, 0.1};

Summary summary_of(const Plan& plan, const std::vector<GroupRun>& runs, const Odds& odds, size_t top) {
  Posterior posterior(static_cast<uint32_t>(plan.hosts.size()), odds);
  for (const GroupRun& run : runs) posterior.add(run.hosts, run.failed);
  return posterior.summary(top);
}

bool has(const HostSet& group, uint32_t host) { return std::ranges::binary_search(group, host); }

bool explains(const Hypothesis& h, const GroupRun& run) {
  switch (h.kind) {
    case Hypothesis::Kind::kNoHost:
      return false;
    case Hypothesis::Kind::kJob:
      return true;
    case Hypothesis::Kind::kOne:
      return has(run.hosts, h.a);
    case Hypothesis::Kind::kTwo:
      return has(run.hosts, h.a) || has(run.hosts, h.b);
  }
  return false;
}

// Probability of at least `least` strays in so many runs.
double at_least(uint32_t least, uint32_t runs, double stray) {
  double term = std::pow(1 - stray, runs), below = 0;
  for (uint32_t k = 0; k < least; ++k) {
    below += term;
    term *= static_cast<double>(runs - k) / (k + 1) * stray / (1 - stray);
  }
  return std::max(0.0, 1 - below);
}

std::vector<uint32_t> candidates_of(const Summary& summary) {
  std::vector<uint32_t> out(summary.of_host.size());
  std::iota(out.begin(), out.end(), 0u);
  std::ranges::stable_sort(out,
                           [&](uint32_t a, uint32_t b) { return summary.of_host[a] > summary.of_host[b]; });
  const double all = std::accumulate(summary.of_host.begin(), summary.of_host.end(), 0.0);
  double sum = 0;
  size_t count = 0;
  while (count < out.size() && sum < kSure * all) sum += summary.of_host[out[count++]];
  out.resize(count);
  return out;
}

std::vector<MixedGroup> mixed_groups(const std::vector<GroupRun>& runs) {
  std::map<std::pair<uint32_t, uint32_t>, MixedGroup> groups;
  for (const GroupRun& run : runs) {
    MixedGroup& group = groups[{run.phase, run.group}];
    group.phase = run.phase, group.group = run.group;
    ++group.runs;
    group.failed += run.failed;
  }
  std::vector<MixedGroup> out;
  for (const auto& [key, group] : groups)
    if (group.failed > 0 && group.failed < group.runs) out.push_back(group);
  return out;
}

uint32_t least_runs(const Plan& plan, const std::vector<GroupRun>& runs) {
  std::vector<uint32_t> of_host(plan.hosts.size());
  for (const GroupRun& run : runs)
    for (const uint32_t host : run.hosts) ++of_host[host];
  return *std::ranges::min_element(of_host);
}

double better_shows(const Plan& plan, const std::vector<GroupRun>& runs, const Odds& odds, double evidence) {
  double best = 0, most = evidence + std::log(kBetter);
  for (const double shows : kOtherShows)
    if (const double other = summary_of(plan, runs, {shows, odds.stray}, 1).log_evidence; other > most)
      best = shows, most = other;
  return best;
}

uint32_t next_phase(const std::vector<GroupRun>& runs) {
  uint32_t last = 2;
  for (const uint32_t phase : {1u, 2u})
    if (std::ranges::none_of(runs, [&](const GroupRun& run) { return run.phase == phase; })) return phase;
  for (const GroupRun& run : runs) last = std::max(last, run.phase);
  return last + 1;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  constexpr std::string_view kWords[] = {"not-reproduced", "hosts", "job", "undecided"};
  return kWords[static_cast<size_t>(verdict)];
}

Verdict verdict_of(const Summary& summary, uint32_t failed, HostSet& named) {
  if (failed == 0) return Verdict::kNotReproduced;
  if (summary.job >= kSure) return Verdict::kJob;
  if (summary.top.empty() || summary.top.front().probability < kSure) return Verdict::kUndecided;
  const Hypothesis& h = summary.top.front();
  if (h.kind == Hypothesis::Kind::kNoHost) return Verdict::kUndecided;
  named = {h.a};
  if (h.kind == Hypothesis::Kind::kTwo) named.push_back(h.b);
  return Verdict::kHosts;
}

HostSet intersection_of(const Plan& plan, const std::vector<GroupRun>& runs) {
  std::vector<bool> met[2] = {std::vector<bool>(plan.hosts.size()), std::vector<bool>(plan.hosts.size())};
  for (const GroupRun& run : runs)
    if (run.failed && run.phase <= 2)
      for (const uint32_t host : run.hosts) met[run.phase - 1][host] = true;
  HostSet out;
  for (uint32_t x = 0; x < plan.hosts.size(); ++x)
    if (met[0][x] && met[1][x]) out.push_back(x);
  return out;
}

Judgement judge(const Plan& plan, const std::vector<GroupRun>& runs, const Odds& odds) {
  Judgement out;
  out.summary = summary_of(plan, runs, odds, kTop);
  out.runs = static_cast<uint32_t>(runs.size());
  out.failed = static_cast<uint32_t>(std::ranges::count_if(runs, &GroupRun::failed));
  out.verdict = verdict_of(out.summary, out.failed, out.named);
  out.candidates = candidates_of(out.summary);
  for (const uint32_t host : intersection_of(plan, runs))
    if (out.summary.of_host[host] < kCleared) out.returned.push_back(host);
  out.runs_least = least_runs(plan, runs);
  out.mixed = mixed_groups(runs);
  const Hypothesis& best = out.summary.top.front();
  for (const GroupRun& run : runs) out.unexplained += run.failed && !explains(best, run);
  out.too_many = out.unexplained > 0 && at_least(out.unexplained, out.runs, odds.stray) < kImprobable;
  if (out.failed > 0) out.better_shows = better_shows(plan, runs, odds, out.summary.log_evidence);
  if (out.verdict == Verdict::kUndecided || out.verdict == Verdict::kNotReproduced) {
    out.next_phase = next_phase(runs);
    if (out.next_phase > 2)
      out.next = next_round(plan, out.summary, odds);
    else
      out.next.groups = groups_of(plan, out.next_phase);
  }
  return out;
}

}  // namespace culprit::replay
