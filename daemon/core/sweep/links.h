// The links of a sweep: all runs of one pair, and what is usual among all pairs. Pure; any thread.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/sweep/pair_run.h"

namespace culprit::sweep {

enum class Trouble : uint8_t { kUnreachable, kWrongBytes, kSlow, kLatency };
constexpr Trouble kTroubles[] = {Trouble::kUnreachable, Trouble::kWrongBytes, Trouble::kSlow,
                                 Trouble::kLatency};

// Medians of the links that one host, which may be bad, does not have; of undisturbed transfers where there
// are enough. Not there: too few pairs were measured.
struct Usual {
  std::optional<double> rate;        // bytes per second, of one direction
  std::optional<double> latency_ns;  // of a round trip
};

struct Link {
  std::vector<const PairRun*> runs;  // borrowed
  // The best figure of all runs; of the rate, in the worse direction.
  std::optional<double> rate, latency_ns;
  uint64_t wrong = 0, bytes = 0;
  bool disturbed = false;  // some run
};
std::map<Pair, Link> links_of(std::span<const PairRun> runs);

// Of the runs in quiet rounds where there are enough, else of all.
Usual usual_of(uint32_t members, std::span<const PairRun> runs);
Usual usual_of_all(uint32_t members, std::span<const PairRun> runs);

// The bars. Their reasons and figures are in docs/checks.md; `culprit simulate sweep` measures them.
constexpr double kSuspectRate = 0.7, kSlowRate = 0.6;
constexpr double kSuspectLatency = 2, kHighLatency = 3;
constexpr TimeNs kLatencyLeast = 200 * kNsPerUs;  // above the usual: less stops no job

bool is_slow(const Flow& flow, const Usual& usual, double bar);
bool is_late(const PairRun& run, const Usual& usual, double bar);
// Whether the run would make a person look again.
bool is_odd(const PairRun& run, const Usual& usual);

}  // namespace culprit::sweep
