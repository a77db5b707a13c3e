// Counts slow steps as independent events. One cause of a delay (a preemption, a neighbour's job, throttling)
// may cover many neighbouring steps and is one event. Evidence against a rank therefore counts events, or
// beats of a period. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace culprit::comm {

// A fault present in this share of all steps is no passing event: preemptions and neighbours' jobs cover 3 to
// 12 of 100 to 250 steps.
constexpr size_t kLastingShare = 6;  // one of this many steps
// Minimum number of slow steps in live jobs: more than a passing event covers.
constexpr size_t kLastingLive = 16;
// In long jobs a smaller share also counts as lasting: kLastingHits slow steps within at least a minute of
// job time.
constexpr size_t kLastingHits = 48;
constexpr double kLastingMs = 60'000;
// For ranks that work on host cores. Measured: load from a neighbour came in pieces of up to 3 s and slowed
// three of four steps. A rank slowed on purpose was slow in nine of ten.
constexpr double kLastingOnCoresMs = 5'000, kBehindOnCores = 0.85;

// Accepted rate of false accusations per job.
constexpr double kAlpha = 0.01;
// Assumed share of slow steps of a permanent fault.
constexpr double kShows = 0.9;

// Evidence over steps: a sum that restarts at zero (CUSUM), so late faults are detected as reliably as faults
// from the first step.
struct Run {
  double best = 0;
  size_t from = 0, to = 0;  // its steps, both inclusive
};

struct Mark {
  uint32_t step = 0;
  bool hit = false;
  bool even = false;  // the hit was even over nearly all places
};

// `floor`: rate of hits for healthy ranks. `even_floor`: rate of even hits among these.
Run strongest(const std::vector<Mark>& marks, double floor, double even_floor);

// Confidence that the slowness is not chance, from the evidence and assuming independent steps. Its upper
// limit assumes two equal ranks: each leads in a step with probability 1/2.
double sure_of(double evidence, double bar, size_t steps);

// Number of independent events. `hits`: by step, whether the rank was slow.
size_t count_events(const std::vector<bool>& hits);

// Negative logarithm of the probability of this many events by chance; `expected`: usual number.
double recurrence_evidence(size_t events, double expected);

// Period of a rank's slow steps.
struct Rhythm {
  size_t period = 0;    // steps; 0: no period
  size_t hits = 0;      // beats with a slow step
  double evidence = 0;  // log likelihood ratio, corrected for the number of tried periods
};
// `others`: by step, how many of the `ranks` other ranks were slow. A period common to all ranks accuses
// none.
Rhythm find_rhythm(const std::vector<bool>& hits, const std::vector<uint32_t>& others, size_t ranks);

}  // namespace culprit::comm
