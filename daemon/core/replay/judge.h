// What the results of a replay mean: the hosts at fault, those that remain, and the runs that tell them
// apart. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/replay/next_round.h"
#include "core/replay/plan.h"
#include "core/replay/posterior.h"
#include "core/replay/results.h"

namespace culprit::replay {

constexpr double kSure = 0.95;     // of a verdict
constexpr double kCleared = 0.01;  // a host below is innocent

enum class Verdict {
  kNotReproduced,  // no run failed
  kHosts,          // Judgement::named are at fault
  kJob,            // groups fail whatever their hosts are
  kUndecided,
};
std::string_view to_string(Verdict verdict);

// A group that failed in some of its runs.
struct MixedGroup {
  uint32_t phase = 0, group = 0, failed = 0, runs = 0;
};

struct Judgement {
  Verdict verdict = Verdict::kUndecided;
  Summary summary;
  HostSet named;                     // one or two hosts
  std::vector<uint32_t> candidates;  // hold 95 % of what speaks against hosts, the most probable first
  HostSet
      returned;  // where failing groups of both phases meet, yet cleared: a rule of intersections holds them
  uint32_t runs = 0, failed = 0;
  uint32_t runs_least = 0;  // of the host that ran least often
  std::vector<MixedGroup> mixed;
  uint32_t unexplained = 0;  // failed runs without a host of the most probable hypothesis
  bool too_many = false;     // so many that strays are improbable (below 5 %)
  double better_shows = 0;   // a share that makes the results ten times as probable; 0: none
  Round next;                // empty after a verdict
  uint32_t next_phase = 0;   // 1 or 2 where that phase did not run yet
};

Judgement judge(const Plan& plan, const std::vector<GroupRun>& runs, const Odds& odds);

// The verdict of a summary alone, and the hosts that it names.
Verdict verdict_of(const Summary& summary, uint32_t failed, HostSet& named);
// The hosts where failing groups of both phases meet: ByteRobust's rule.
HostSet intersection_of(const Plan& plan, const std::vector<GroupRun>& runs);

}  // namespace culprit::replay
