// Neighbouring steps are not independent: one cause of a delay (a preemption, a neighbour's job, throttling)
// may cover many steps and is still one event. Evidence against a rank is therefore counted in events, or in
// the beats of a period. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace culprit::comm {

// A fault present in this share of all steps is no passing event: preemptions and neighbours' jobs take 3 to
// 12 of 100 to 250 steps.
constexpr size_t kLastingShare = 6;  // one of so many
// A live job goes on: the judge waits until more steps are slow than a passing event covers.
constexpr size_t kLastingLive = 16;
// In long jobs a smaller share lasts too: this many slow steps within at least a minute of the job's time.
constexpr size_t kLastingHits = 48;
constexpr double kLastingMs = 60'000;
// Where the work is done on a host's cores: a neighbour's work came in pieces of up to 3 s in runs next to a
// load, and left the rank behind in three of four steps; a rank that was slowed on purpose was so in nine.
constexpr double kLastingOnCoresMs = 5'000, kBehindOnCores = 0.85;

// Counts the independent events. `hits`: by step, whether the rank was slow.
size_t count_events(const std::vector<bool>& hits);

// Minus the logarithm of the probability that this many events are chance, where `expected` are usual.
double recurrence_evidence(size_t events, double expected);

// The period with which a rank is slow.
struct Rhythm {
  size_t period = 0;    // steps; 0: there is none
  size_t hits = 0;      // beats in which it was slow
  double evidence = 0;  // log likelihood ratio, corrected for the choice of a period
};
// `others`: by step, how many of the `ranks` other ranks were slow: a period that all share accuses no rank.
Rhythm find_rhythm(const std::vector<bool>& hits, const std::vector<uint32_t>& others, size_t ranks);

}  // namespace culprit::comm
