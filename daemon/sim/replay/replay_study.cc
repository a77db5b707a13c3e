#include "sim/replay/replay_study.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/replay/judge.h"
#include "sim/random.h"

namespace culprit::sim {
namespace {

using replay::GroupRun;
using replay::HostSet;

constexpr size_t kTop = 512;
constexpr double kHeld = 0.05;  // a host above is held while the search goes on

// Runs groups of a plan in which some hosts are at fault.
class Bench {
 public:
  Bench(const replay::Plan& plan, const ReplayCase& of, double stray, Random random)
      : plan_(plan), shows_(of.shows), stray_(stray), random_(random) {
    while (faulty_.size() < of.faults) {
      const auto host = static_cast<uint32_t>(random_.below(plan.hosts.size()));
      if (!std::ranges::binary_search(faulty_, host))
        faulty_.insert(std::ranges::upper_bound(faulty_, host), host);
    }
  }

  const HostSet& faulty() const { return faulty_; }

  std::vector<GroupRun> round(const std::vector<HostSet>& groups, uint32_t phase) {
    std::vector<GroupRun> out;
    for (const HostSet& group : groups) {
      bool failed = random_.real() < stray_;
      for (const uint32_t host : faulty_)
        if (std::ranges::binary_search(group, host)) failed |= random_.real() < shows_;
      out.push_back({phase, static_cast<uint32_t>(out.size() + 1), failed, group});
    }
    return out;
  }

  uint64_t innocent(const HostSet& held) const {
    return static_cast<uint64_t>(std::ranges::count_if(
        held, [&](uint32_t host) { return !std::ranges::binary_search(faulty_, host); }));
  }

  void end(const HostSet& held, ReplayOutcome& out) const {
    const uint64_t others = innocent(held);
    const bool all = std::ranges::includes(held, faulty_);
    ++(all && others == 0 ? out.found : all ? out.held_all : others == 0 ? out.missed : out.wrong);
    out.innocent += others;
  }

 private:
  const replay::Plan& plan_;
  double shows_, stray_;
  Random random_;
  HostSet faulty_;
};

void add_rounds(uint32_t rounds, ReplayOutcome& out, std::vector<uint32_t>& all) {
  out.rounds += rounds;
  all.push_back(rounds);
}

// Both phases `repeats` times; a group is at fault if one of its runs failed.
void intersect(Bench& bench, const replay::Plan& plan, uint32_t repeats, ReplayOutcome& out,
               std::vector<uint32_t>& rounds) {
  std::vector<GroupRun> runs;
  for (uint32_t i = 0; i < repeats; ++i)
    for (const uint32_t phase : {1u, 2u}) {
      const std::vector<GroupRun> more = bench.round(replay::groups_of(plan, phase), phase);
      runs.insert(runs.end(), more.begin(), more.end());
      if (i == 0 && phase == 2) out.innocent_first += bench.innocent(replay::intersection_of(plan, runs));
    }
  out.runs += runs.size();
  add_rounds(2 * repeats, out, rounds);
  bench.end(replay::intersection_of(plan, runs), out);
}

// Hosts that failing runs made more suspect than all are at the beginning.
HostSet held_of(const replay::Summary& summary, uint32_t failed) {
  HostSet out;
  const double least = std::max(kHeld, 3.0 / static_cast<double>(summary.of_host.size()));
  for (uint32_t host = 0; host < summary.of_host.size(); ++host)
    if (failed > 0 && summary.of_host[host] >= least) out.push_back(host);
  return out;
}

// Whether a host is named already, though perhaps not all are.
bool names_first(const Bench& bench, const replay::Summary& summary, ReplayOutcome& out) {
  const auto host = std::ranges::max_element(summary.of_host);
  if (*host < replay::kSure) return false;
  out.first_wrong += bench.innocent({static_cast<uint32_t>(host - summary.of_host.begin())}) > 0;
  return true;
}

void search(Bench& bench, const replay::Plan& plan, const ReplayStudy& study, const replay::Odds& odds,
            ReplayOutcome& out, std::vector<uint32_t>& rounds) {
  replay::Posterior posterior(static_cast<uint32_t>(plan.hosts.size()), odds);
  replay::Summary summary;
  HostSet named;
  uint32_t failed = 0, round = 0, first = 0;
  while (round < study.rounds_most) {
    ++round;
    const auto groups =
        round <= 2 ? replay::groups_of(plan, round) : replay::next_round(plan, summary, odds).groups;
    for (const GroupRun& run : bench.round(groups, round)) {
      posterior.add(run.hosts, run.failed);
      failed += run.failed;
      ++out.runs;
    }
    if (round == 1) continue;
    summary = posterior.summary(kTop);
    const replay::Verdict verdict = replay::verdict_of(summary, failed, named);
    if (round == 2)
      out.innocent_first +=
          bench.innocent(verdict == replay::Verdict::kHosts ? named : held_of(summary, failed));
    if (first == 0 && names_first(bench, summary, out)) first = round;
    if (verdict == replay::Verdict::kHosts || verdict == replay::Verdict::kJob) break;
  }
  add_rounds(round, out, rounds);
  out.rounds_first += first > 0 ? first : round;
  bench.end(named, out);
}

void finish(std::vector<uint32_t> rounds, ReplayOutcome& out) {
  if (rounds.empty()) return;
  std::ranges::sort(rounds);
  out.rounds_p90 = rounds[(rounds.size() * 9 + 9) / 10 - 1];
  out.rounds_max = rounds.back();
}

Result<ReplayRow> run_case(const ReplayStudy& study, const ReplayCase& of, uint64_t seed) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < of.hosts; ++i) names.push_back("n" + std::to_string(i + 1));
  const auto plan = replay::plan_of(std::move(names), of.size);
  if (!plan) return tl::unexpected(plan.error());
  ReplayRow out{of, plan->size, {}, {}, {}};
  const replay::Odds odds{study.assumed > 0 ? study.assumed : of.shows, study.stray};
  const uint32_t repeats = replay::repeats_for(of.shows, replay::kSure);
  std::vector<uint32_t> once, repeated, searched;
  for (uint32_t trial = 0; trial < study.trials; ++trial) {
    const Random random = Random(seed).fork(trial);
    Bench first(*plan, of, study.stray, random), second = first, third = first;
    intersect(first, *plan, 1, out.intersection, once);
    intersect(second, *plan, repeats, out.repeated, repeated);
    search(third, *plan, study, odds, out.posterior, searched);
  }
  finish(std::move(once), out.intersection);
  finish(std::move(repeated), out.repeated);
  finish(std::move(searched), out.posterior);
  return out;
}

}  // namespace

std::vector<ReplayCase> replay_cases() {
  std::vector<ReplayCase> out;
  for (const double shows : {1.0, 0.3})
    for (const uint32_t faults : {1u, 2u})
      for (const uint32_t hosts : {16u, 64u, 256u, 1024u}) out.push_back({hosts, 0, faults, shows});
  return out;
}

Result<std::vector<ReplayRow>> run_replay_study(const ReplayStudy& study) {
  std::vector<ReplayRow> out;
  for (const ReplayCase& of : study.cases) {
    if (of.faults > of.hosts) return fail(ErrorCode::kInvalid, "more hosts at fault than hosts");
    auto row = run_case(study, of, study.seed * 1'000'003 + out.size());
    if (!row) return tl::unexpected(row.error());
    out.push_back(std::move(*row));
  }
  return out;
}

}  // namespace culprit::sim
